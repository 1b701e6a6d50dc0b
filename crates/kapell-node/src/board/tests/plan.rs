use kapell_core::board::plan::{Step, Wishes};
use kapell_core::board::{ProcessGuid, Resources};

use super::theatre::{Manner, Theatre, Told, definition, desire, lrp, presence, secs};
use crate::testing::eventually;

#[tokio::test(start_paused = true)]
async fn a_plan_asks_the_cells_anew_and_changes_nothing() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    for cell in ["a", "b"] {
        show.board.present(presence(cell)).unwrap();
    }
    let room = Resources { memory_mb: 32, disk_mb: 100, containers: 10 };
    theatre.cells.has("a", room);
    theatre.cells.has("b", room);
    let event = show.board.last_event();
    let wishes =
        Wishes { lrps: vec![lrp("web", 4)], tasks: vec![definition("t")], ..Wishes::default() };
    let plan = show.board.plan(&wishes).await;
    assert_eq!(plan.units.iter().filter(|unit| unit.cell_id.is_some()).count(), 4, "{plan:?}");
    assert!(!plan.fits);
    assert_eq!(plan.wishes[0].step, Step::Create);
    // Again, with more room.
    theatre.cells.has("b", Resources { memory_mb: 48, ..room });
    assert!(show.board.plan(&wishes).await.fits);
    assert!(theatre.cells.work().is_empty());
    assert_eq!(show.board.last_event(), event);
    assert!(show.instance("web", 0).is_none() && show.task("t").is_none());
    assert_eq!(theatre.cells.count(|told| *told == Told::State), 4);
}

#[tokio::test(start_paused = true)]
async fn a_plan_counts_what_waits_in_other_shards_and_names_silent_cells() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    show.board.ask(desire("waits", 2)).await.unwrap();
    eventually("they wait", secs(1), async || show.instance("waits", 1).is_some()).await;
    let nobody = show.board.plan(&Wishes { lrps: vec![lrp("web", 1)], ..Wishes::default() }).await;
    let reason = nobody.units.iter().find_map(|unit| unit.reason.clone());
    assert_eq!(reason.as_deref(), Some("found no compatible cells: no cell is present"));
    theatre.cells.behave("s", Manner::Silent);
    show.board.present(presence("s")).unwrap();
    let wishes = Wishes {
        lrps: vec![lrp("waits", 1)],
        keep_instances: vec![ProcessGuid::from("waits")],
        ..Wishes::default()
    };
    let plan = show.board.plan(&wishes).await;
    assert_eq!(plan.silent, ["s".into()]);
    assert_eq!((plan.wishes[0].step, plan.units.len()), (Step::Unchanged, 2));
    assert!(plan.units.iter().all(|unit| unit.wished && unit.waits), "{plan:?}");
    let reason = plan.units[0].reason.as_deref();
    assert_eq!(reason, Some("unable to communicate to compatible cells"));
}
