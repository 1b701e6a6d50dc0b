//! `kapell explain`

use kapell_api::client::Client;
use kapell_api::v1::Explanation;

use super::args::{Explain, Output};
use super::show::{data, to_value};
use super::target::Target;
use super::text::{long, now, time};
use crate::logger::Style;
use crate::logger::style::{Colour, clean};
use crate::print;

pub(crate) async fn run(args: &Explain, client: &Client) -> anyhow::Result<u8> {
    if args.at.is_some() && !matches!(args.what, Target::Job(_)) {
        anyhow::bail!("--at is for jobs: write job/ID");
    }
    let explanation = match &args.what {
        Target::Lrp { process_guid, index: Some(index) } => {
            client.explain_lrp(process_guid, *index).await?
        }
        Target::Lrp { process_guid, index: None } => client.explain_process(process_guid).await?,
        Target::Task(guid) => client.explain_task(guid).await?,
        Target::Cell(id) => client.explain_cell(id).await?,
        Target::Job(id) => client.explain_job(id, args.at.as_deref()).await?,
        Target::Run(id) => client.explain_run(id).await?,
        Target::Domain(name) => anyhow::bail!("see `kapell domain list` for `{name}`"),
    };
    print(&match args.show.output {
        Output::Text => show(&explanation),
        Output::Json | Output::Yaml => data(&to_value(&explanation), args.show.output),
    });
    Ok(0)
}

fn show(explanation: &Explanation) -> String {
    let style = Style::of_stdout();
    let mut out = format!(
        "{}: {}\n",
        style.paint(Colour::Bold, &clean(&explanation.subject)),
        clean(&explanation.summary)
    );
    let mut line = |mark: &str, text: &str| {
        out.push_str(&format!("  {} {}\n", style.paint(Colour::Dim, mark), clean(text)));
    };
    if !explanation.rule.is_empty() {
        line("rule:", &explanation.rule);
    }
    for fact in &explanation.facts {
        line("·", fact);
    }
    if !explanation.inputs.is_empty() {
        let inputs: Vec<String> =
            explanation.inputs.iter().map(|it| format!("{}={}", it.name, it.value)).collect();
        line("goes by:", &inputs.join(", "));
    }
    for remedy in &explanation.remedies {
        line("to change it:", remedy);
    }
    if let Some(at) = explanation.next_try_at {
        let wait = u64::try_from(at.0.saturating_sub(now().0)).unwrap_or(0);
        out.push_str(&format!("  next try in {}, at {}\n", long(wait), time(at)));
    }
    out
}
