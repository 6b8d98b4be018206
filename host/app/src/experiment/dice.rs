//! Chance that can be repeated.

/// SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators",
/// OOPSLA 2014).
#[derive(Debug, Clone)]
pub(super) struct Dice(u64);

impl Dice {
    /// Starts a sequence; another number gives another one.
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Draws a number from 0 to below `sides`, which must not be 0.
    pub(super) fn below(&mut self, sides: usize) -> usize {
        let wide = u128::from(self.next()) * sides as u128;
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    /// Draws one of some things, of which there must be at least one.
    pub(super) fn one_of<'t, T>(&mut self, things: &'t [T]) -> &'t T {
        &things[self.below(things.len())]
    }

    /// Puts things into an order without any pattern (Fisher–Yates).
    pub(super) fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Dice;

    #[test]
    fn equal_seeds_draw_equal_numbers_within_their_bounds() {
        let draw = |seed| {
            let mut dice = Dice::new(seed);
            (0..100).map(|_| dice.below(6)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!((0..6).all(|side| draw(1).contains(&side)));
        let mut things = [1, 2, 3, 4, 5];
        Dice::new(3).shuffle(&mut things);
        assert_ne!(things, [1, 2, 3, 4, 5]);
        things.sort_unstable();
        assert_eq!(things, [1, 2, 3, 4, 5]);
    }
}
