/**
 * jq reads its input and nothing else, but for a few words: the environment and modules. Strings are not skipped, since `\\( … )`
 * inside one is code again; a field of that name (`.env`) is only a field.
 */
const reaching =
  /(?<![.\w])\$?(?:env|ENV|include|import|modulemeta|get_search_list|input_filename|debug|stderr|halt_error)(?!\w)/

export function inspectJq(program: string): string | null {
  const found = reaching.exec(program)
  return found ? `${found[0]} reaches beyond the input` : null
}
