//! Reading the record back: replay, comparison, and exports.

mod life;

use super::cli::Desk;
use life::lived;

#[test]
fn tmp_make() {
    let desk = Desk::of(lived);
    if let Ok(to) = std::env::var("TMP_MAKE") {
        std::fs::copy(desk.file(), to).unwrap();
    }
}
