//! Crontabs of other schedulers.

use crate::schedule::crontab::{Columns, CrontabLine, read};

fn faults(text: &str, columns: Columns) -> Vec<String> {
    let faults = read(text, columns).unwrap_err();
    faults.iter().map(|fault| format!("{fault}\n{}", fault.carets())).collect()
}

#[test]
fn a_crontab_is_read_line_by_line() {
    let text = "# backups\nSHELL=/bin/bash\n NAME = \"two words\" \n\n\
                15 4 * * MON-FRI\tbackup --all  # not a comment\n\
                CRON_TZ=Europe/Berlin\nNAME='other'\n@daily  date +\\%F > /tmp/x \n\
                @every 5m ping\n";
    let env = |name: &str| vec![("SHELL".into(), "/bin/bash".into()), ("NAME".into(), name.into())];
    let line = |line, schedule: &str, timezone: Option<&str>, command: &str, name| CrontabLine {
        line,
        schedule: schedule.into(),
        timezone: timezone.map(str::to_owned),
        user: None,
        command: command.into(),
        env: env(name),
    };
    let want = [
        line(5, "15 4 * * MON-FRI", None, "backup --all  # not a comment", "two words"),
        line(8, "@daily", Some("Europe/Berlin"), "date +%F > /tmp/x", "other"),
        line(9, "@every 5m", Some("Europe/Berlin"), "ping", "other"),
    ];
    assert_eq!(read(text, Columns::User).unwrap(), want);
}

#[test]
fn the_user_is_a_column_of_system_crontabs_only() {
    let text = "17 *\t* * *\troot\tcd / && run-parts /etc/cron.hourly\n";
    let system = &read(text, Columns::System).unwrap()[0];
    assert_eq!(system.user.as_deref(), Some("root"));
    assert_eq!(system.command, "cd / && run-parts /etc/cron.hourly");
    assert_eq!(system.schedule, "17 *\t* * *");
    let user = &read(text, Columns::User).unwrap()[0];
    assert_eq!(
        (user.user.as_deref(), user.command.as_str()),
        (None, "root\tcd / && run-parts /etc/cron.hourly")
    );
}

#[test]
fn all_faults_are_said_with_their_line() {
    let text = "CRON_TZ=Europe/Brelin\n61 * * * * a\n0 4 * * *\n@reboot start\n0 4 * * * mail%hello\n  0 25 * * * b";
    let got = faults(text, Columns::User);
    let want = [
        "line 1: the time zone `Europe/Brelin` is not known (write `Europe/Berlin`)\nCRON_TZ=Europe/Brelin\n        ^^^^^^^^^^^^^",
        "line 2: `61` is no minute (write 0 to 59)\n61 * * * * a\n^^",
        "line 3: the line has no command (write five fields or `@daily`, then the command)\n0 4 * * *\n^^^^^^^^^",
        "line 4: `@reboot` is not known (a job runs at times; for what runs always, apply an LRP)\n@reboot start\n^^^^^^^",
        "line 5: `%` as the end of a command is not supported (write `\\%` for a percent sign; give input with `printf … |`)\n0 4 * * * mail%hello\n              ^",
        "line 6: `25` is no hour (write 0 to 23)\n  0 25 * * * b\n    ^^",
    ];
    assert_eq!(got, want);
}

#[test]
fn a_system_line_without_a_command_says_which_columns_there_are() {
    let want = "line 1: the line has no command (write five fields or `@daily`, the user, then the command)\n@daily root\n^^^^^^^^^^^";
    assert_eq!(faults("@daily root", Columns::System), [want]);
}

#[test]
fn an_empty_crontab_has_no_lines() {
    assert_eq!(read("\n# nothing\n\t\n", Columns::User).unwrap(), []);
}
