// Requests to the service, with its API key where there is one.

const KEY = "adawidth-key";

/** An error as the service words it. */
export class Problem extends Error {
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

/** Takes the key from the address (#key=…), so that it is in no history and no bookmark. */
export function takeKey() {
  const given = new URLSearchParams(location.hash.slice(1)).get("key");
  if (given === null) return;
  keep(given);
  history.replaceState(null, "", location.pathname + location.search);
}

export function keep(key) {
  sessionStorage.setItem(KEY, key);
}

export const get = (path, signal) => request(path, { signal });
export const post = (path, body, signal) =>
  request(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal });
export const remove = (path) => request(path, { method: "DELETE" });

async function request(path, options) {
  const key = sessionStorage.getItem(KEY);
  const headers = { ...options.headers, ...(key ? { authorization: `Bearer ${key}` } : {}) };
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "unreachable", "The service does not answer. Is it still running?");
  }
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Problem(answer.status, content.code ?? "", content.detail ?? `The service answered ${answer.status}.`);
  return content;
}
