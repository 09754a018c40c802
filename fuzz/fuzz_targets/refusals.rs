#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    (talaria_fuzz::target("refusals").expect("the target is listed").run)(data)
});
