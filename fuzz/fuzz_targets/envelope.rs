#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| coroner_fuzz::envelope(data));
