//! How often the bytes of a file may still be moved, so that cost follows the new data. Pure.
//!
//! New bytes come with [`BUDGET`] moves: laying them out is the first, merging with other layers the
//! others. Each rewrite spends one of the mean that its inputs had left, and its files carry the rest
//! as a tag. What reclusters a large layer pays for all of it with what the smaller layers have left
//! ([`crate::overlap`]), so that a hundred appends rewrite at most four bytes per byte appended.
//! Example: eight new files of which each was laid out alone have (4 − 1) = 3 left; merged they have 2.

use crate::{action::AddFile, sizing::live_bytes, zcube};

/// Tag with what is left, in thousandths.
pub(crate) const TAG: &str = "LAKEBED_MOVES_LEFT";
/// One move.
pub(crate) const MOVE: u64 = 1_000;
/// How often new bytes may be rewritten in all.
const BUDGET: u64 = 4 * MOVE;

/// Returns how often a file's bytes may still be moved, in thousandths. A clustered file that does not
/// say was laid out once, as far as we know.
pub(crate) fn left(file: &AddFile) -> u64 {
    let tagged = file.tag(TAG).and_then(|text| text.parse().ok());
    let untold = || if file.tag(zcube::ZCUBE_ID).is_some() { BUDGET - MOVE } else { BUDGET };
    tagged.unwrap_or_else(untold).min(BUDGET)
}

/// Returns what is left to the files that a rewrite makes of others.
pub(crate) fn left_after<'f>(inputs: impl Iterator<Item = &'f AddFile>) -> u64 {
    let (mut bytes, mut sum) = (0_u128, 0_u128);
    for file in inputs {
        let live = u128::from(live_bytes(file));
        bytes += live;
        sum += live * u128::from(left(file));
    }
    let mean = sum.checked_div(bytes).and_then(|mean| u64::try_from(mean).ok()).unwrap_or(BUDGET);
    mean.saturating_sub(MOVE)
}

#[cfg(test)]
mod tests {
    use super::{TAG, left, left_after};
    use crate::{
        action::AddFile,
        testing::{clustered_file, plain_file},
    };

    fn with_left(bytes: u64, moves: &str) -> AddFile {
        let mut file = clustered_file("f", bytes, "cube", &["a"]);
        file.tags.get_or_insert_default().insert(TAG.to_owned(), Some(moves.to_owned()));
        file
    }

    #[test]
    fn new_bytes_have_four_moves_and_clustered_ones_what_they_say() {
        assert_eq!(left(&plain_file("f", 1)), 4_000);
        assert_eq!(left(&clustered_file("f", 1, "cube", &["a"])), 3_000);
        assert_eq!(left(&with_left(1, "2125")), 2_125);
        assert_eq!(left(&with_left(1, "99999999")), 4_000);
        assert_eq!(left(&with_left(1, "many")), 3_000);
    }

    #[test]
    fn a_rewrite_spends_one_of_the_mean() {
        let seven = || (0..7).map(|_| with_left(10, "3000"));
        let files: Vec<AddFile> = seven().chain([plain_file("new", 10)]).collect();
        assert_eq!(left_after(files.iter()), 2_125);
        assert_eq!(left_after([with_left(30, "0"), with_left(10, "2000")].iter()), 0);
        assert_eq!(left_after(std::iter::empty()), 3_000);
    }
}
