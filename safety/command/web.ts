import { harmlessPaths } from './harmless-paths.ts'

/** Whether a request to a web server only looks, by its path and query. */

type Rule = { segments: readonly string[]; query: ReadonlySet<string> }

const exact = new Map<string, Set<string>>()
const patterned: Rule[] = []
for (const { paths, query = '' } of harmlessPaths) {
  const names = query.split(/\s+/).filter((name) => name !== '')
  for (const path of paths.trim().split(/\s+/)) {
    if (path.includes('*')) patterned.push({ segments: path.split('/'), query: new Set(names) })
    else exact.set(path, new Set([...(exact.get(path) ?? []), ...names]))
  }
}

/** A longer query asks for more than a look takes. */
const longestQuery = 500

/** `target` is what follows the host and port: a path, with or without a query. */
export function isHarmlessRequest(target: string): boolean {
  const asked = target === '' ? '/' : target
  if (exact.has(asked)) return true
  const mark = asked.indexOf('?')
  const path = (mark < 0 ? asked : asked.slice(0, mark)).replace(/^\?/, '/')
  const query = mark < 0 ? '' : asked.slice(mark + 1)
  // Servers differ on what an escape, a parameter or a dot in a path means.
  if (!/^\/[\w./:@~+-]*$/.test(path) || /\/\.{1,2}(?:\/|$)|\/\//.test(path) || query.length > longestQuery) return false
  const names = query.split('&').filter((part) => part !== '')
  return allowed(path).some((known) =>
    names.every((part) => known.has(part.replace(/=.*$/s, '').replace(/%5B%5D$/i, '[]'))),
  )
}

function allowed(path: string): ReadonlySet<string>[] {
  const found = exact.get(path)
  if (found) return [found]
  const segments = path.split('/')
  return patterned
    .filter((rule) => rule.segments.length === segments.length)
    .filter((rule) =>
      rule.segments.every(
        (name, at) =>
          name === segments[at] ||
          (name === '*' && /^[\w.,:@-]+$/.test(segments[at]!) && !/^[_.-]/.test(segments[at]!)),
      ),
    )
    .map(({ query }) => query)
}
