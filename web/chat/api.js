// Talks to the gateway that served this page, and to nothing else.

let csrf = "";

/** The gateway refused, or (with status 0) could not be reached. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }

  /** Whether exactly the same request may succeed later. */
  get passing() {
    return this.status === 0 || this.status === 503 || this.status === 429 || this.status === 502;
  }
}

async function request(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    throw new ApiError(0, "The gateway cannot be reached.");
  }
  if (answer.status === 401 && path !== "/api/login") dispatchEvent(new Event("talaria:login"));
  if (!answer.ok) {
    const told = await answer.json().catch(() => ({}));
    throw new ApiError(answer.status, told.error ?? `The gateway answered ${answer.status}.`);
  }
  return answer.status === 204 ? null : answer.json();
}

function post(path, body) {
  return request(path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-talaria-csrf": csrf },
    body: JSON.stringify(body),
    // A connection that hangs is a connection that failed; the id makes repeating it safe.
    signal: AbortSignal.timeout(10_000),
  });
}

const conversation = (id) => `/api/conversations/${encodeURIComponent(id)}`;

export async function state() {
  const opening = await request("/api/state");
  csrf = opening.csrf;
  return opening;
}

export const conversations = () => request("/api/conversations");
export const login = (token) => post("/api/login", { token });
export const logout = () => post("/api/logout", {});
export const search = (query) => request(`/api/search?${new URLSearchParams({ q: query })}`);
export const say = (id, message) => post(`${conversation(id)}/messages`, message);
export const press = (id, event, choice) => post(`${conversation(id)}/press`, { id: event, choice });
export const stop = (id, event) => post(`${conversation(id)}/stop`, { id: event });

export const people = () => request("/api/people");
export const decide = (account, decision) => post(`/api/people/${encodeURIComponent(account)}`, decision);

export function history(id, before, limit = 50) {
  const query = new URLSearchParams({ limit });
  if (before !== undefined) query.set("before", before);
  return request(`${conversation(id)}/history?${query}`);
}

export const fileAddress = (file) =>
  `/api/files/${encodeURIComponent(file.id)}?${new URLSearchParams({ name: file.name })}`;

/** Uploads one file. `fetch` cannot tell how far an upload is. */
export function upload(file, onProgress, signal) {
  return new Promise((resolve, reject) => {
    const transfer = new XMLHttpRequest();
    transfer.open("POST", "/api/files");
    transfer.setRequestHeader("x-talaria-csrf", csrf);
    transfer.setRequestHeader("x-file-name", encodeURIComponent(file.name));
    transfer.setRequestHeader("content-type", file.type || "application/octet-stream");
    transfer.responseType = "json";
    transfer.upload.onprogress = (event) => {
      if (event.lengthComputable) onProgress(event.loaded / event.total);
    };
    transfer.onload = () => {
      if (transfer.status === 200) resolve(transfer.response);
      else reject(new ApiError(transfer.status, transfer.response?.error ?? "The upload was refused."));
    };
    transfer.onerror = () => reject(new ApiError(0, "The gateway cannot be reached."));
    transfer.onabort = () => reject(new ApiError(0, "Cancelled."));
    signal?.addEventListener("abort", () => transfer.abort());
    transfer.send(file);
  });
}
