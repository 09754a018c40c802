#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    (talaria_fuzz::target("config").expect("the target is listed").run)(data)
});
