//! A workflow as a picture: GraphViz, Mermaid, or a tree of text.

use std::fmt::Write as _;

use super::{On, StepIx, Workflow};

/// The graph in GraphViz's language.
pub fn dot(workflow: &Workflow) -> String {
    let mut out = String::new();
    line(&mut out, format_args!("digraph {} {{", quoted(&workflow.name)));
    line(&mut out, format_args!("  rankdir=LR;"));
    line(&mut out, format_args!("  node [shape=box, style=rounded];"));
    for (_, step) in workflow.proper_steps() {
        line(&mut out, format_args!("  {};", quoted(&step.name)));
    }
    for (ix, step) in workflow.proper_steps() {
        for edge in workflow.graph.parents(ix) {
            let parent = quoted(&workflow.step(edge.step).name);
            let label = match edge.on {
                On::Success => String::new(),
                on @ (On::Failure | On::Skipped | On::Done) => {
                    format!(" [label={}, style=dashed]", quoted(on.name()))
                }
            };
            line(&mut out, format_args!("  {parent} -> {}{label};", quoted(&step.name)));
        }
    }
    out.push_str("}\n");
    out
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The graph in Mermaid's language.
pub fn mermaid(workflow: &Workflow) -> String {
    let mut out = String::from("flowchart LR\n");
    for (ix, step) in workflow.proper_steps() {
        let label = step.name.replace('#', "#35;").replace('"', "#quot;");
        line(&mut out, format_args!("  s{}[\"{label}\"]", ix.index()));
    }
    for (ix, _) in workflow.proper_steps() {
        for edge in workflow.graph.parents(ix) {
            let arrow = match edge.on {
                On::Success => "-->".to_owned(),
                on @ (On::Failure | On::Skipped | On::Done) => format!("-. {on} .->"),
            };
            line(&mut out, format_args!("  s{} {arrow} s{}", edge.step.index(), ix.index()));
        }
    }
    out
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("writing to a String cannot fail");
}

/// How long the strokes before a step may get, in bytes.
const MAX_STROKES: usize = 200;

/// One line of a tree: the step, and the strokes before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    pub step: StepIx,
    pub strokes: String,
    /// Parents other than the one it hangs under.
    pub also: Vec<StepIx>,
}

/// Lays the graph out as a tree: every step once, below the last of its parents to appear.
pub fn outline(workflow: &Workflow) -> Vec<Branch> {
    // The deepest parent: a step then never stands above something it waits for.
    let mut depth = vec![0_usize; workflow.len()];
    let mut below: Vec<Vec<StepIx>> = vec![Vec::new(); workflow.len()];
    let mut roots = Vec::new();
    let mut host: Vec<Option<StepIx>> = vec![None; workflow.len()];
    for step in workflow.graph.order() {
        let deepest = workflow
            .graph
            .parents(step)
            .iter()
            .map(|edge| edge.step)
            .max_by_key(|parent| depth[parent.index()]);
        host[step.index()] = deepest;
        match deepest {
            Some(parent) => {
                depth[step.index()] = depth[parent.index()] + 1;
                below[parent.index()].push(step);
            }
            None => roots.push(step),
        }
    }
    let mut branches = Vec::with_capacity(workflow.len());
    // (step, strokes of its ancestors, whether it is the last of its siblings, whether it is a root)
    let mut todo: Vec<(StepIx, String, bool, bool)> =
        roots.iter().rev().map(|&step| (step, String::new(), false, true)).collect();
    while let Some((step, before, last, root)) = todo.pop() {
        let own = match (root, last) {
            (true, _) => "",
            (false, true) => "└─ ",
            (false, false) => "├─ ",
        };
        let also = workflow.graph.parents(step).iter().map(|edge| edge.step);
        let also = also.filter(|&parent| Some(parent) != host[step.index()]).collect();
        branches.push(Branch { step, strokes: format!("{before}{own}"), also });
        let further = match (root, last) {
            // Nobody can follow deeper strokes, and a long chain would be mostly strokes.
            _ if before.len() > MAX_STROKES => before,
            (true, _) => before,
            (false, true) => before + "   ",
            (false, false) => before + "│  ",
        };
        let children = &below[step.index()];
        for (at, &child) in children.iter().enumerate().rev() {
            todo.push((child, further.clone(), at + 1 == children.len(), false));
        }
    }
    branches
}

/// The graph as indented text.
pub fn tree(workflow: &Workflow) -> String {
    let mut out = format!("{}\n", workflow.name);
    for branch in outline(workflow) {
        let step = workflow.step(branch.step);
        let mut text = format!("{}{}", branch.strokes, step.name);
        let conditional =
            workflow.graph.parents(branch.step).iter().filter(|edge| edge.on != On::Success);
        for edge in conditional {
            write!(text, " [on {} of {}]", edge.on, workflow.step(edge.step).name)
                .expect("a String");
        }
        if !branch.also.is_empty() {
            let names: Vec<_> =
                branch.also.iter().take(5).map(|&also| &*workflow.step(also).name).collect();
            let more = if branch.also.len() > 5 {
                format!(" and {} more", branch.also.len() - 5)
            } else {
                String::new()
            };
            write!(text, " (also after {}{more})", names.join(", ")).expect("a String");
        }
        line(&mut out, format_args!("{text}"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::load;
    use super::*;

    const DIAMOND: &str = "
name: diamond
steps:
  - {name: a, command: x}
  - {name: b, command: x, depends: a}
  - {name: c, command: x, depends: [{step: a, on: failure}]}
  - {name: d, command: x, depends: [b, c]}
";

    fn diamond() -> Workflow {
        load(DIAMOND.as_bytes(), "x").unwrap().workflow
    }

    #[test]
    fn dot_names_every_edge() {
        let text = dot(&diamond());
        assert!(
            text.contains(r#""a" -> "b";"#)
                && text.contains(r#""a" -> "c" [label="failure", style=dashed];"#),
            "{text}"
        );
    }

    #[test]
    fn mermaid_names_every_edge() {
        let text = mermaid(&diamond());
        assert!(text.contains("s0 --> s1") && text.contains("s0 -. failure .-> s2"), "{text}");
    }

    #[test]
    fn a_tree_shows_every_step_once() {
        let want = "diamond\na\n├─ b\n└─ c [on failure of a]\n   └─ d (also after b)\n";
        assert_eq!(tree(&diamond()), want);
    }
}
