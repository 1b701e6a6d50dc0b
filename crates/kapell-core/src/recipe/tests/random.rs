//! Random recipes, and whatever can happen to them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::shapes::*;
use crate::board::Action;
use crate::recipe::{Course, Event, Leaf, Order, Outcome, Phase, Recipe};

fn actions() -> impl Strategy<Value = Action> {
    let leaf = prop_oneof![4 => Just(run("a")), 1 => Just(download()), 1 => Just(upload())];
    leaf.prop_recursive(5, 40, 5, |inner| {
        let several = || prop::collection::vec(inner.clone(), 0..5);
        prop_oneof![
            (1_u64..20_000, inner.clone()).prop_map(|(ms, action)| timeout(ms, action)),
            inner.clone().prop_map(attempt),
            inner.clone().prop_map(progress),
            several().prop_map(parallel),
            several().prop_map(serial),
            several().prop_map(codependent),
        ]
    })
}

fn recipes() -> impl Strategy<Value = Recipe> {
    (prop::option::of(actions()), actions()).prop_map(|(setup, action)| Recipe { setup, action })
}

/// What happens next, drawn before anybody knows what is under way.
#[derive(Debug, Clone)]
struct Chance {
    later_ms: u64,
    which: prop::sample::Index,
    kind: u8,
}

fn chances() -> impl Strategy<Value = Vec<Chance>> {
    let one = (0_u64..6_000, any::<prop::sample::Index>(), 0_u8..20)
        .prop_map(|(later_ms, which, kind)| Chance { later_ms, which, kind });
    prop::collection::vec(one, 0..60)
}

/// A course and all that must hold of it.
struct Life {
    course: Course,
    at: Duration,
    events: Vec<(Duration, Event)>,
    begun: BTreeSet<Leaf>,
    under_way: BTreeSet<Leaf>,
    told: BTreeSet<Leaf>,
    stopped: bool,
}

impl Life {
    fn begin(recipe: Recipe) -> Self {
        let (course, orders) = Course::begin(recipe);
        let mut life = Self {
            course,
            at: Duration::ZERO,
            events: Vec::new(),
            begun: BTreeSet::new(),
            under_way: BTreeSet::new(),
            told: BTreeSet::new(),
            stopped: false,
        };
        life.take(&orders);
        life
    }

    fn take(&mut self, orders: &[Order]) {
        for order in orders {
            match order {
                Order::Begin(leaf) => {
                    assert!(self.begun.insert(*leaf), "{leaf:?} begins twice");
                    assert!(!self.stopped, "{leaf:?} begins after all was stopped");
                    self.under_way.insert(*leaf);
                }
                Order::Stop(leaf) => {
                    assert!(self.begun.contains(leaf), "{leaf:?} is stopped and never began");
                    assert!(self.told.insert(*leaf), "{leaf:?} is stopped twice");
                }
                Order::Say(_) => assert!(!self.stopped, "something is said after all was stopped"),
            }
        }
        let is_over = matches!(self.course.phase(), Phase::Over(_));
        assert_eq!(is_over, self.under_way.is_empty(), "over is when nothing is under way");
        assert!(!is_over || self.course.next_due().is_none(), "time is watched for nothing");
        for leaf in &self.under_way {
            assert_eq!(self.course.is_told_to_stop(*leaf), self.told.contains(leaf), "{leaf:?}");
        }
    }

    fn happens(&mut self, event: Event) {
        match &event {
            Event::Ended(leaf, _) => drop(self.under_way.remove(leaf)),
            Event::Stop => self.stopped |= !matches!(self.course.phase(), Phase::Over(_)),
        }
        let orders = self.course.happened(&event, self.at);
        self.events.push((self.at, event));
        self.take(&orders);
    }

    fn passes(&mut self, later_ms: u64) {
        self.at += Duration::from_millis(later_ms);
        let orders = self.course.time(self.at);
        self.take(&orders);
    }

    fn chance(&mut self, chance: &Chance) {
        self.passes(chance.later_ms);
        let one =
            || chance.which.get(&self.under_way.iter().copied().collect::<Vec<_>>()).to_owned();
        match chance.kind {
            0 => self.happens(Event::Stop),
            1 => self.happens(Event::Ended(Leaf(u32::from(chance.kind) * 7), badly(9))),
            2..6 => {}
            _ if self.under_way.is_empty() => {}
            6..15 => self.happens(Event::Ended(one(), well())),
            _ => self.happens(Event::Ended(one(), badly(1))),
        }
    }

    /// Ends whatever is under way, until nothing is.
    fn finish(&mut self) {
        for _ in 0..10_000 {
            let Some(leaf) = self.under_way.first().copied() else { return };
            self.happens(Event::Ended(leaf, well()));
        }
        panic!("it never ends");
    }
}

fn orders_again(life: &Life) -> BTreeMap<Leaf, Vec<&'static str>> {
    let what =
        |leaf: &Leaf| if life.told.contains(leaf) { vec!["begin", "stop"] } else { vec!["begin"] };
    life.under_way.iter().map(|leaf| (*leaf, what(leaf))).collect()
}

fn by_leaf(orders: &[Order]) -> BTreeMap<Leaf, Vec<&'static str>> {
    let mut all: BTreeMap<Leaf, Vec<_>> = BTreeMap::new();
    for order in orders {
        match order {
            Order::Begin(leaf) => all.entry(*leaf).or_default().push("begin"),
            Order::Stop(leaf) => all.entry(*leaf).or_default().push("stop"),
            Order::Say(text) => panic!("`{text}` is said again"),
        }
    }
    all
}

/// The other way to say what a recipe comes to, if everything happens in time: written from the meaning of the actions.
fn comes_to(action: &Action, outcomes: &mut impl Iterator<Item = bool>) -> Result<(), ()> {
    match action {
        Action::Run(_) | Action::Download(_) | Action::Upload(_) => {
            if outcomes.next().unwrap_or(true) { Ok(()) } else { Err(()) }
        }
        Action::Timeout(it) => comes_to(&it.action, outcomes),
        Action::EmitProgress(it) => comes_to(&it.action, outcomes),
        Action::Try(it) => {
            let _swallowed = comes_to(&it.action, outcomes);
            Ok(())
        }
        Action::Serial(it) => it.actions.iter().try_for_each(|each| comes_to(each, outcomes)),
        Action::Parallel(it) => {
            let all: Vec<_> = it.actions.iter().map(|each| comes_to(each, outcomes)).collect();
            all.into_iter().collect()
        }
        Action::Codependent(it) if it.actions.is_empty() => Ok(()),
        Action::Codependent(_) => Err(()),
    }
}

fn has_codependent(action: &Action) -> bool {
    match action {
        Action::Run(_) | Action::Download(_) | Action::Upload(_) => false,
        Action::Timeout(it) => has_codependent(&it.action),
        Action::EmitProgress(it) => has_codependent(&it.action),
        Action::Try(it) => has_codependent(&it.action),
        Action::Serial(it) | Action::Parallel(it) => it.actions.iter().any(has_codependent),
        Action::Codependent(_) => true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_course_comes_to_its_end(recipe in recipes(), chances in chances()) {
        let mut life = Life::begin(recipe);
        for chance in &chances {
            life.chance(chance);
        }
        life.finish();
        let Phase::Over(outcome) = life.course.phase() else { panic!("not over") };
        prop_assert_eq!(life.course.is_stopping(), life.stopped);
        prop_assert!(!life.stopped || outcome.failure.is_none(), "what was stopped has not failed");
        let before = life.course.clone();
        for leaf in life.begun.clone() {
            life.course.happened(&Event::Ended(leaf, badly(1)), life.at);
        }
        prop_assert_eq!(life.course, before, "all is over");
    }

    #[test]
    fn what_is_resumed_stands_as_what_was_lived(
        recipe in recipes(),
        chances in chances(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut life = Life::begin(recipe.clone());
        let cut = cut.index(chances.len() + 1);
        for chance in &chances[..cut] {
            life.chance(chance);
        }
        let (mut resumed, mut orders) = Course::resume(recipe, &life.events);
        orders.extend(resumed.time(life.at));
        prop_assert_eq!(&resumed, &life.course);
        prop_assert_eq!(by_leaf(&orders), orders_again(&life));
        let mut other = Life { course: resumed, events: life.events.clone(), begun: life.begun.clone(), under_way: life.under_way.clone(), told: life.told.clone(), ..life };
        for chance in &chances[cut..] {
            life.chance(chance);
            other.chance(chance);
        }
        prop_assert_eq!(life.course, other.course);
    }

    #[test]
    fn it_comes_to_what_its_actions_mean(action in actions(), outcomes in prop::collection::vec(any::<bool>(), 60)) {
        prop_assume!(!has_codependent(&action));
        let mut life = Life::begin(recipe(action.clone()));
        // Leaves that are never begun draw nothing, in either way of telling: so each gets what its turn has.
        let mut turn = outcomes.iter().copied();
        let mut drawn: BTreeMap<Leaf, bool> = BTreeMap::new();
        while let Some(leaf) = life.under_way.first().copied() {
            let goes_well = turn.next().unwrap_or(true);
            drawn.insert(leaf, goes_well);
            let outcome = if goes_well { well() } else { badly(1) };
            life.happens(Event::Ended(leaf, outcome));
        }
        let Phase::Over(Outcome { failure, .. }) = life.course.phase() else { panic!("not over") };
        let meant = comes_to(&action, &mut drawn.into_values());
        prop_assert_eq!(failure.is_none(), meant.is_ok());
    }
}
