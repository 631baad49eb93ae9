// The value of `name` in the variable `STAND_IN`, which reads like `name=7 other=9`.
fn told<T: std::str::FromStr>(name: &str, otherwise: T) -> T {
    let all = std::env::var("STAND_IN").unwrap_or_default();
    let values = all.split(' ').filter_map(|said| said.split_once('=')).filter(|said| said.0 == name);
    values.filter_map(|said| said.1.parse().ok()).last().unwrap_or(otherwise)
}

// Functions that do nothing and return success, or the code that `STAND_IN` gives.
#[allow(unused_macros, reason = "not every stand-in has such")]
macro_rules! answers {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> u32 {
            told(stringify!($name), 0)
        }
    )* };
}
