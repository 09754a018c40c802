#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    (talaria_fuzz::target("hostile_markdown").expect("the target is listed").run)(data)
});
