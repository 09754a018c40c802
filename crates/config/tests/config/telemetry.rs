//! Metrics and traces.

use crate::{loaded, problems};

#[test]
fn nothing_is_told_to_anybody_unless_a_collector_is_named() {
    let config =
        loaded("", &["OTEL_EXPORTER_OTLP_ENDPOINT=http://elsewhere:4318"]).config().clone();
    assert!(config.telemetry.otlp.is_none() && config.telemetry.metrics_token.is_none());
    let yaml = "telemetry:\n  otlp: https://collector.example/prefix\n  \
                otlp_headers: {authorization: Bearer 1}\n  metrics_token: 0123456789abcdef\n";
    let telemetry = loaded(yaml, &[]).config().telemetry.clone();
    assert_eq!(telemetry.otlp.unwrap().as_str(), "https://collector.example/prefix");
    assert_eq!(telemetry.otlp_headers["authorization"].expose(), "Bearer 1");
    assert_eq!(telemetry.metrics_token.unwrap().expose(), "0123456789abcdef");
}

#[test]
fn what_cannot_be_a_collector_is_refused_by_its_name() {
    for (yaml, expected) in [
        ("telemetry: {otlp: 'unix:/run/otel'}", "telemetry.otlp"),
        ("telemetry: {otlp: 'http://me:secret@host:4318'}", "telemetry.otlp: (hidden)"),
        ("telemetry: {otlp: 'http://host:4318?key=1'}", "telemetry.otlp_headers"),
        ("telemetry: {otlp: 'http://host:4318/v1/traces'}", "is added by itself"),
        (
            "telemetry: {otlp: 'http://host:4318', otlp_headers: {'a b': c}}",
            "is not the name of an HTTP header",
        ),
        ("telemetry: {metrics_token: short}", "telemetry.metrics_token"),
    ] {
        let told = problems(yaml, &[]);
        assert!(told.contains(expected), "{yaml}: {told}");
    }
    for (yaml, expected) in [
        ("telemetry: {otlp_headers: {a: b}}", "makes no difference without telemetry.otlp"),
        ("telemetry: {oltp: 'http://host:4318'}", "did you mean telemetry.otlp?"),
    ] {
        let odd = loaded(yaml, &[]);
        let told: Vec<String> = odd.warnings().iter().map(ToString::to_string).collect();
        assert!(told[0].contains(expected), "{told:?}");
    }
}
