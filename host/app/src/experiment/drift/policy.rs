//! Rules of when to move between layouts, and what each costs: bytes scanned and bytes rewritten.

use lakebed_graph::{Regret, RegretSettings, Standing};

/// What there is to decide about: statements by windows, layouts, prices.
#[derive(Debug, Clone)]
pub(super) struct Course {
    /// Per window, per statement, per layout: bytes that it reads. Layout 0 is the one at the start.
    pub(super) reads: Vec<Vec<Vec<f64>>>,
    /// Bytes rewritten to come from one layout to another.
    pub(super) prices: Vec<Vec<f64>>,
}

/// What a rule spent.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Spending {
    /// Per window, scans and rewrites together.
    pub(super) by_window: Vec<f64>,
    /// Changes of layout.
    pub(super) moves: usize,
}

impl Spending {
    pub(super) fn total(&self) -> f64 {
        self.by_window.iter().sum()
    }
}

impl Course {
    pub(super) fn layouts(&self) -> usize {
        self.prices.len()
    }

    fn scans(&self, window: usize, layout: usize) -> f64 {
        self.reads[window].iter().map(|reads| reads[layout]).sum()
    }

    /// Follows one layout per window, moved to before the window.
    fn follow(&self, layouts: &[usize]) -> Spending {
        let mut spending = Spending::default();
        let mut present = 0;
        for (window, &layout) in layouts.iter().enumerate() {
            spending.moves += usize::from(layout != present);
            spending.by_window.push(self.prices[present][layout] + self.scans(window, layout));
            present = layout;
        }
        spending
    }

    /// The cheapest course of layouts by windows for someone who knows all windows beforehand.
    pub(super) fn offline(&self) -> Spending {
        let layouts = self.layouts();
        // Per layout: the least that the windows so far cost when they end in it, and the way there.
        let mut least: Vec<(f64, Vec<usize>)> = (0..layouts)
            .map(|layout| (if layout == 0 { 0.0 } else { f64::INFINITY }, Vec::new()))
            .collect();
        for window in 0..self.reads.len() {
            least = (0..layouts)
                .map(|layout| {
                    let from =
                        (0..layouts).map(|from| (least[from].0 + self.prices[from][layout], from));
                    let (cost, from) = from
                        .min_by(|a, b| a.0.total_cmp(&b.0))
                        .expect("there is the layout at the start");
                    let mut way = least[from].1.clone();
                    way.push(layout);
                    (cost + self.scans(window, layout), way)
                })
                .collect();
        }
        let best = least.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
        best.map(|(_, way)| self.follow(&way)).unwrap_or_default()
    }

    /// Plans after the first window, and again after each one that a meter calls changed: the layout
    /// that would have read least in the window just seen.
    pub(super) fn by_verdicts(&self, replan_after: &[bool]) -> Spending {
        let mut layouts = vec![0];
        for window in 0..self.reads.len() - 1 {
            let best = (0..self.layouts())
                .min_by(|&a, &b| self.scans(window, a).total_cmp(&self.scans(window, b)));
            let present = layouts[window];
            let is_due = window == 0 || replan_after[window];
            layouts.push(if is_due { best.unwrap_or(present) } else { present });
        }
        self.follow(&layouts)
    }

    /// Counts regret after every stretch of statements; a layout made for a mix comes into view when
    /// a stretch of that mix has been seen, as a planner could not have made it before.
    pub(super) fn by_regret(
        &self,
        stretch: usize,
        settings: RegretSettings,
        layout_of_window: &[usize],
    ) -> Spending {
        let mut regret = Regret::new(self.layouts(), settings);
        let mut is_in_view = vec![false; self.layouts()];
        let mut spending = Spending::default();
        let mut present = 0;
        for (window, statements) in self.reads.iter().enumerate() {
            let mut cost = 0.0;
            for part in statements.chunks(stretch.max(1)) {
                let reads = |layout: usize| part.iter().map(|reads| reads[layout]).sum::<f64>();
                let now = reads(present);
                cost += now;
                let layouts: Vec<Standing> = (0..self.layouts())
                    .map(|layout| {
                        // What nobody knows of yet saves nothing.
                        let reads = if is_in_view[layout] { reads(layout) } else { now };
                        Standing { reads, price: self.prices[present][layout] }
                    })
                    .collect();
                is_in_view[layout_of_window[window]] = true;
                if let Some(layout) = regret.observe(now, &layouts) {
                    cost += self.prices[present][layout];
                    spending.moves += 1;
                    present = layout;
                }
            }
            spending.by_window.push(cost);
        }
        spending
    }

    /// Never moves.
    pub(super) fn as_it_is(&self) -> Spending {
        self.follow(&vec![0; self.reads.len()])
    }
}

#[cfg(test)]
mod tests {
    use lakebed_graph::RegretSettings;

    use super::Course;

    /// Two windows of ten statements: layout 1 is right for the first, 2 for the second.
    fn course(price: f64) -> Course {
        let window = |right: usize| {
            let reads = |layout| if layout == right { 10.0 } else { 100.0 };
            vec![(0..3).map(reads).collect::<Vec<f64>>(); 10]
        };
        let prices = (0..3).map(|a| (0..3).map(|b| if a == b { 0.0 } else { price }).collect());
        Course { reads: vec![window(1), window(2)], prices: prices.collect() }
    }

    #[test]
    fn knowing_all_moves_before_each_window_where_it_pays() {
        let (cheap, dear) = (course(50.0).offline(), course(10_000.0).offline());
        assert_eq!((cheap.by_window, cheap.moves), (vec![150.0, 150.0], 2));
        assert_eq!((dear.total(), dear.moves), (2000.0, 0));
        // Two moves and 200 of reading, against none and 2000.
        assert_eq!(course(850.0).offline().moves, 2);
        assert_eq!(course(950.0).offline().moves, 0);
    }

    #[test]
    fn a_rule_of_windows_is_a_window_late() {
        let late = course(50.0).by_verdicts(&[false, true]);
        assert_eq!((late.by_window, late.moves), (vec![1000.0, 1050.0], 1));
    }

    #[test]
    fn regret_moves_when_a_stretch_has_lost_the_price() {
        let settings = RegretSettings { margin: 0.0, dwell: 0 };
        let spending = course(100.0).by_regret(2, settings, &[1, 2]);
        // Two statements to see the mix, two to lose 180, then the move; the same in both windows.
        assert_eq!(spending.by_window, [400.0 + 100.0 + 60.0; 2]);
        assert_eq!(spending.moves, 2);
        assert_eq!(course(100.0).as_it_is().by_window, [1000.0; 2]);
    }
}
