//! Every text of a report, in place.
//!
//! Owns the list of fields. Each structure is taken apart without `..`, so that a new field does not compile until
//! it is said here whether it holds text of the log. Words of the catalog (ids, phases, roles) are left out.

use serde_json::Value;

use crate::report::model::*;

/// What a text is known to be from where it stands.
pub enum Field<'a> {
    /// Anything.
    Text,
    /// The name of a host or pod.
    Node,
    /// The name of a model.
    Model,
    /// The value of a setting, flag or variable of this name.
    Value(&'a str),
}

type Visit<'v> = dyn FnMut(Field<'_>, &mut String) + 'v;

/// Visits them all.
pub fn texts(report: &mut Report, visit: &mut Visit<'_>) {
    let Report {
        schema: _,
        program: _,
        redaction: _,
        source,
        outcome: _,
        headline,
        story,
        engine,
        phase: _,
        cause: _,
        alternatives,
        root,
        exception,
        evidence,
        findings,
        figures,
        measurements,
        memory,
        remedies,
        will_not_help,
        overruled_advice,
        retry,
        next_evidence,
        owner: _,
        launch,
        processes,
        timeline,
        attempt: _,
        attempts,
        fingerprint: _,
        log,
        examined,
        snippet,
        rows,
        confidence_terms,
    } = report;
    // Fields that say what a name is come first: pseudonyms are numbered in the order of this walk.
    if let Some(Root { place, also_in }) = root {
        self::place(place, visit);
        each(also_in, visit);
    }
    processes.iter_mut().for_each(|p| process(p, visit));
    each([source, headline, story], visit);
    each(&mut engine.version, visit);
    for Alternative {
        id: _,
        title,
        confidence: _,
        why,
        why_not,
    } in alternatives
    {
        each([title, why, why_not], visit);
    }
    if let Some(ExceptionReport {
        kind,
        message,
        frames,
        chain,
        origin: _,
    }) = exception
    {
        each([kind, message], visit);
        for FrameReport {
            file,
            line: _,
            function,
        } in frames
        {
            each([file, function], visit);
        }
        each(chain, visit);
    }
    for Evidence {
        n: _,
        role: _,
        signature: _,
        place,
        explained_by: _,
        why,
    } in evidence
    {
        self::place(place, visit);
        each(why, visit);
    }
    for Attempt {
        n: _,
        input,
        first_line: _,
        last_line: _,
        outcome: _,
        phase: _,
        cause: _,
        fingerprint: _,
    } in attempts
    {
        each(input, visit);
    }
    for Finding {
        id: _,
        title,
        severity: _,
        evidence: _,
    } in findings
    {
        each([title], visit);
    }
    for Measurement {
        name: _,
        value: _,
        printed,
        process,
        device: _,
        line: _,
        evidence: _,
    } in measurements
    {
        each([printed], visit);
        each(process, visit);
    }
    if let Some(memory) = memory {
        account(memory, visit);
    }
    remedies.iter_mut().for_each(|r| remedy(r, visit));
    for NoHelp { title, why } in will_not_help {
        each([title, why], visit);
    }
    for Overruled {
        input,
        line: _,
        text,
        why,
    } in overruled_advice
    {
        each([input, text, why], visit);
    }
    let Retry {
        verdict: _,
        why,
        same_node: _,
        after,
    } = retry;
    each([why], visit);
    each(after, visit);
    for NextEvidence { what, why, command } in next_evidence {
        each([what, why, command], visit);
    }
    // Rules of users name figures too.
    let taken = std::mem::take(figures);
    figures.extend(taken.into_iter().map(|(mut name, value)| {
        visit(Field::Text, &mut name);
        (name, value)
    }));
    self::launch(launch, visit);
    for TimelineEntry {
        process,
        phase: _,
        input,
        line: _,
        time: _,
        seconds: _,
    } in timeline
    {
        each([process, input], visit);
    }
    let LogState {
        head: _,
        tail: _,
        missing,
    } = log;
    each(missing, visit);
    let Examined {
        files: _,
        bytes: _,
        lines: _,
        skipped,
        capped,
    } = examined;
    for SkippedReport { input, why } in skipped {
        each([input, why], visit);
    }
    each(capped, visit);
    for SnippetLine {
        input,
        line: _,
        text,
        role: _,
    } in snippet
    {
        each([input, text], visit);
    }
    for ProcessRow {
        who,
        count: _,
        nodes,
        victim: _,
        same: _,
        last_phase,
        said,
        exit,
        input,
        line: _,
        when,
    } in rows
    {
        each([who], visit);
        each(
            [nodes, last_phase, said, exit, input, when].into_iter().flatten(),
            visit,
        );
    }
    each(confidence_terms.iter_mut().map(|(term, _)| term), visit);
}

fn each<'a>(texts: impl IntoIterator<Item = &'a mut String>, visit: &mut Visit<'_>) {
    texts.into_iter().for_each(|text| visit(Field::Text, text));
}

fn place(place: &mut PlaceReport, visit: &mut Visit<'_>) {
    let PlaceReport {
        input,
        line: _,
        byte: _,
        time: _,
        time_local: _,
        time_after: _,
        process,
        attribution: _,
        rank: _,
        coords: _,
        node,
        text,
    } = place;
    node.iter_mut().for_each(|node| visit(Field::Node, node));
    each(process, visit);
    each([input, text], visit);
}

fn process(process: &mut Process, visit: &mut Visit<'_>) {
    let Process {
        id,
        role: _,
        rank: _,
        coords: _,
        node,
        pid: _,
        last_phase: _,
        exit,
    } = process;
    node.iter_mut().for_each(|node| visit(Field::Node, node));
    each([id], visit);
    each(exit, visit);
}

fn account(memory: &mut Memory, visit: &mut Visit<'_>) {
    let Memory {
        pool: _,
        process,
        device: _,
        total_gib: _,
        free_at_start_gib: _,
        requested_gib: _,
        holders,
        short_by_gib: _,
        notes,
    } = memory;
    each(process, visit);
    each(holders.iter_mut().map(|holder| &mut holder.what), visit);
    each(notes, visit);
}

fn remedy(remedy: &mut Remedy, visit: &mut Visit<'_>) {
    let Remedy {
        rank: _,
        id: _,
        title,
        why,
        change,
        patch,
        cost,
        risk: _,
        verify,
        arithmetic,
        evidence: _,
        pair_with: _,
    } = remedy;
    each([title, why, cost, verify], visit);
    each(arithmetic, visit);
    for Patch {
        form: _,
        place: _,
        text,
    } in patch
    {
        each([text], visit);
    }
    for Change {
        kind: _,
        name,
        from,
        to,
    } in change
    {
        each([&mut *name], visit);
        from.iter_mut().for_each(|from| visit(Field::Value(name), from));
        // The new value is advice, such as “a token that may read the model”.
        each(to, visit);
    }
}

fn launch(launch: &mut Launch, visit: &mut Visit<'_>) {
    let Launch {
        command,
        model,
        settings,
        platform,
        started: _,
        died: _,
        seconds_to_death: _,
        world_size: _,
        nodes: _,
        gpus: _,
        ids,
    } = launch;
    model.iter_mut().for_each(|model| visit(Field::Model, model));
    each(command, visit);
    let Platform { gpu, unified_memory: _ } = platform;
    each(gpu, visit);
    let LaunchIds {
        slurm_job,
        pod,
        container,
        ray_session,
    } = ids;
    pod.iter_mut().for_each(|pod| visit(Field::Node, pod));
    each(slurm_job, visit);
    each(container, visit);
    each(ray_session, visit);
    let taken = std::mem::take(settings);
    settings.extend(taken.into_iter().map(|(mut name, mut value)| {
        setting(&name, &mut value, visit);
        visit(Field::Text, &mut name);
        (name, value)
    }));
}

fn setting(name: &str, value: &mut Value, visit: &mut Visit<'_>) {
    match value {
        Value::String(text) => visit(Field::Value(name), text),
        // A number can be a password: it is judged as the text that it was.
        Value::Number(number) => {
            let mut text = number.to_string();
            visit(Field::Value(name), &mut text);
            if text != number.to_string() {
                *value = Value::String(text);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| setting(name, item, visit)),
        Value::Object(fields) => {
            let taken = std::mem::take(fields);
            fields.extend(taken.into_iter().map(|(mut name, mut value)| {
                setting(&name, &mut value, visit);
                visit(Field::Text, &mut name);
                (name, value)
            }));
        }
        Value::Null | Value::Bool(_) => {}
    }
}
