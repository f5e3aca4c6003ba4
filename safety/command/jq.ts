/**
 * jq reads its input and nothing else, but for a few words: the environment and modules. Strings are not skipped, since `\\( … )`
 * inside one is code again; a field of that name (`.env`) is only a field.
 */
const reaching =
  /(?<![.\w])\$?(?:env|ENV|include|import|modulemeta|get_search_list|input_filename|debug|stderr|halt_error)(?!\w)/

/** What can go on for ever or grow without a bound that stands in the text. */
const endless =
  /(?<![.\w$])(?:def|while|until|repeat)(?!\w)|(?<![.\w$])range\s*\((?!\s*(?:\d{1,6}|length)(?:\s*;\s*(?:\d{1,6}|length))?\s*\))|\*\s*(?:\d{7,}|\d[\d.]*[eE])|(?:\d{7,}|\d[\d.]*[eE]\+?\d+)\s*\*/

export function inspectJq(program: string): string | null {
  const unbounded = endless.exec(program)
  if (unbounded) return `${unbounded[0]} may never end`
  const found = reaching.exec(program)
  return found ? `${found[0]} reaches beyond the input` : null
}
