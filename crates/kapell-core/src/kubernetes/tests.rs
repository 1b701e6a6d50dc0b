mod check;
mod judge;
mod order;
mod refusal;
mod step;
