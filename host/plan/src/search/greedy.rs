//! Greedy as adaptive join-aware layout has it (N. Mahore, SSRN 7030626, 2026, "Layout decision").
//!
//! 1. Every edge proposes the layout that is worth most under the plan so far.
//! 2. The best proposal that fits what is left of the budgets is taken.
//! 3. The proposals of every edge at a decided table are weighed again; one that gives a decided
//!    table another layout pays for a second rewrite.
//! 4. It ends when no proposal is worth anything.
//!
//! The rule has no guarantee: where joins pay only together it takes nothing, and one large table
//! may eat the budget of better ones. It is kept to be compared with; [`super::Seeded`] is the
//! search without these two faults.

use super::{
    Problem, Search, Solution,
    bound::dual,
    climb::{Climber, Step, Weight, signed},
    exceeds,
    seeded::bounder,
};

/// The paper's rule: the most valuable step first, from nothing, once.
#[derive(Debug, Clone, Copy, Default)]
pub struct Greedy;

impl Search for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
    }

    fn search(&self, problem: &Problem) -> Solution {
        let (choices, nodes) = take_best_first(problem);
        let npv = problem.value(&choices);
        let upper_bound = dual(problem, bounder(problem)).upper.max(npv);
        let proven = !exceeds(upper_bound, npv);
        Solution { choices, npv, upper_bound, proven, nodes }
    }
}

fn take_best_first(problem: &Problem) -> (Vec<usize>, u64) {
    let mut climber = Climber::new(problem);
    // Bytes of rewrites that later ones undid: they are paid all the same.
    let (mut wasted_rewrite, mut wasted_storage) = (0i64, 0i64);
    loop {
        let mut best: Option<(f64, Step, Weight)> = None;
        for (step, weight) in climber.steps() {
            let undone = undone(problem, &climber.choices, step);
            let gain = weight.gain - undone.gain;
            let is_within = climber.is_within(
                weight.rewrite + undone.rewrite + wasted_rewrite,
                weight.storage + undone.storage + wasted_storage,
            );
            if is_within && exceeds(gain, 0.0) && best.is_none_or(|(most, ..)| gain > most) {
                best = Some((gain, step, undone));
            }
        }
        let Some((_, step, undone)) = best else { return (climber.choices, climber.weighed) };
        wasted_rewrite += undone.rewrite;
        wasted_storage += undone.storage;
        climber.take(step);
    }
}

/// What was paid for the layouts that a step replaces; its `gain` is the price in value.
fn undone(problem: &Problem, choices: &[usize], step: Step) -> Weight {
    let mut undone = Weight::default();
    for (table, option) in step.ends() {
        let own = choices[table];
        if own > 0 && own != option {
            let paid = &problem.tables()[table].options[own];
            undone.gain += paid.rewrite_bytes.as_f64();
            undone.rewrite += signed(paid.rewrite_bytes);
            undone.storage += signed(paid.storage_bytes);
        }
    }
    undone
}
