//! Chance that can be repeated.

/// A small generator (SplitMix64) whose sequence depends on its seed alone.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// Returns a number from 0 to below `sides`, which must not be 0.
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % sides
    }
}
