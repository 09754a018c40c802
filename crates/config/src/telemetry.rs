//! Settings of metrics and traces, and what must hold of them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use talaria_model::Secret;
use url::Url;

use crate::finding::Finding;
use crate::known::below;
use crate::rules::{Origins, Verdict, is_header_name};
use crate::settings::optional_url;
use crate::units::UrlText;

/// What other programs may know of the gateway: numbers at `/metrics`, and traces of messages. Nothing of
/// what is said is in either.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetrySettings {
    /// Where an OpenTelemetry collector takes OTLP over HTTP, like `http://127.0.0.1:4318`. When it is set,
    /// every message is followed from the platform's event to the platform's receipts and told there.
    #[serde(deserialize_with = "optional_url")]
    #[schemars(with = "Option<UrlText>", extend("x-synonyms" = ["endpoint", "otlp_endpoint"]))]
    pub otlp: Option<Url>,

    /// Further HTTP headers for the collector, by name. Their values are treated as secrets.
    pub otlp_headers: BTreeMap<String, Secret>,

    /// Whoever reads `/metrics` has to send this as a bearer token. Without it, only programs on this machine
    /// may, and only while nobody else can come: `http.listen` is a loopback address and
    /// `http.allowed_hosts` is empty.
    #[schemars(extend("x-applies" = "live"))]
    pub metrics_token: Option<Secret>,
}

/// The shortest token that is not guessed.
const SHORTEST_TOKEN: usize = 16;

pub(crate) fn check(telemetry: &TelemetrySettings, origins: &Origins<'_>, verdict: &mut Verdict) {
    let TelemetrySettings { otlp, otlp_headers, metrics_token } = telemetry;
    let mut refuse = |path: &str, expectation: &str| {
        verdict.problems.push(Finding::at(&origins.of(path), path, expectation));
    };
    if let Some(url) = otlp {
        let is_plain = matches!(url.scheme(), "http" | "https")
            && url.query().is_none()
            && url.fragment().is_none();
        if !is_plain {
            refuse(
                "telemetry.otlp",
                "is not where a collector is; write it like http://127.0.0.1:4318, and secrets in \
                 telemetry.otlp_headers",
            );
        } else if url.path().trim_end_matches('/').ends_with("/v1/traces") {
            refuse("telemetry.otlp", "ends in /v1/traces, which is added by itself; leave it out");
        }
    }
    for header in otlp_headers.keys().filter(|header| !is_header_name(header)) {
        let path = below("telemetry.otlp_headers", header);
        refuse(&path, "is not the name of an HTTP header");
    }
    if metrics_token.as_ref().is_some_and(|token| token.expose().len() < SHORTEST_TOKEN) {
        refuse(
            "telemetry.metrics_token",
            "is too short to be a secret; `openssl rand -hex 16` makes one",
        );
    }
    if let (None, Some(header)) = (otlp, otlp_headers.keys().next()) {
        let path = below("telemetry.otlp_headers", header);
        let expectation = "makes no difference without telemetry.otlp";
        verdict.warnings.push(Finding::at(&origins.of(&path), &path, expectation));
    }
}
