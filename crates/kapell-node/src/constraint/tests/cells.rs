use kapell_core::board::Resources;

use crate::board::tests::theatre::{Manner, Theatre, presence};
use crate::constraint::{BoardCells, Cells as _};

#[tokio::test(start_paused = true)]
async fn the_cells_of_a_board_are_asked_as_they_are_now() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    let cells = BoardCells(show.board.clone());
    assert_eq!(cells.states().await.unwrap().len(), 0);
    theatre.cells.behave("silent", Manner::Silent);
    show.board.present(presence("silent")).unwrap();
    assert_eq!(cells.states().await.unwrap_err(), "none of 1 cells answers");
    show.board.present(presence("a")).unwrap();
    for memory_mb in [32, 16] {
        let room = Resources { memory_mb, disk_mb: 100, containers: 10 };
        theatre.cells.has("a", room);
        let states = cells.states().await.unwrap();
        assert_eq!(states.len(), 1, "the silent one is left out");
        assert_eq!(states[0].available, room);
    }
}
