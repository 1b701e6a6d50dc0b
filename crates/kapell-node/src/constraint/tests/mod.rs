mod actions;
mod cells;
mod checks;
mod running;
mod stage;
