//! Breadth first: so the first world that breaks a promise is one that the fewest steps lead to.

use std::collections::{HashSet, VecDeque};

use super::mixer::BuildPlain;
use super::promise::Promise;
use super::row::Row;
use super::step::{Step, take};
use super::world::World;

/// What a search came to.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) worlds: usize,
    pub(crate) steps: usize,
    pub(crate) depth: usize,
    /// A bit for each [`Sight`](super::promise::Sight).
    pub(crate) sights: u32,
    /// The promise broken first, and the shortest way there.
    pub(crate) broken: Option<(Promise, Vec<Step>)>,
}

/// Each world with its number.
type Layer = VecDeque<(World, u32)>;

/// Searches all worlds of `row`, or until `matters` says of a broken promise that it is the one looked for.
pub(crate) fn search(row: &Row, matters: impl Fn(Promise) -> bool) -> Found {
    let mut known: HashSet<u128, BuildPlain> = HashSet::default();
    let mut origins: Vec<(u32, Step)> = vec![(0, Step::Start)];
    let first = World::new(row);
    known.insert(first.likeness(row));
    let mut layer = Layer::from([(first, 0)]);
    let mut found = Found { worlds: 1, steps: 0, depth: 0, sights: 0, broken: None };
    let mut choices = Vec::new();
    while !layer.is_empty() {
        let mut next = Layer::new();
        while let Some((world, number)) = layer.pop_front() {
            world.choices(row, &world.likeness_of_each(row), &mut choices);
            for step in &choices {
                let (after, effect) = take(row, &world, *step);
                found.steps += 1;
                found.sights |= effect.seen.sights;
                let broken = after.broken(row, &world, effect.seen, &matters);
                if !known.insert(after.likeness(row)) && broken.is_none() {
                    continue;
                }
                let place = u32::try_from(origins.len()).expect("fewer than four thousand million worlds");
                origins.push((number, *step));
                if let Some(promise) = broken {
                    found.broken = Some((promise, way(&origins, place)));
                    found.worlds = known.len();
                    return found;
                }
                next.push_back((after, place));
            }
        }
        found.depth += usize::from(!next.is_empty());
        layer = next;
    }
    found.worlds = known.len();
    found
}

fn way(origins: &[(u32, Step)], mut place: u32) -> Vec<Step> {
    let mut steps = Vec::new();
    while place != 0 {
        let (before, step) = origins[place as usize];
        steps.push(step);
        place = before;
    }
    steps.reverse();
    steps
}
