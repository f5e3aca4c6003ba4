/** Plain data as JSON that cannot end its fence: the angle brackets are escaped, and JSON readers see no difference. */
export function inertJson(value: unknown): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c').replaceAll('>', '\\u003e')
}

/** Fences untrusted text under a name. Whatever it holds, it cannot close the fence. */
export function fence(name: string, text: string): string {
  const inert = text.replaceAll('<<<', '‹‹‹').replaceAll('>>>', '›››')
  return `<<<DATA ${name}\n${inert}\nDATA>>>`
}
