import type { Middleware } from './hono.ts'
import { Problem } from './problem.ts'

/**
 * Path and query are text that a database can store: percent-encoded UTF-8 without NUL. Refused here once, so that no route
 * meets an address which it would read differently from another.
 */
export const readableAddress: Middleware = async (c, next) => {
  const url = c.req.raw.url
  const start = url.indexOf('/', url.indexOf('://') + 3)
  const [path = '/', query = ''] = splitAt(start < 0 ? '/' : url.slice(start), '?')
  const problem = flawOf(path, 'path') ?? flawOf(query.replaceAll('+', ' '), 'query') ?? repeated(c.req.path, query)
  if (problem) throw problem
  await next()
}

function splitAt(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark)
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

function flawOf(text: string, part: 'path' | 'query'): Problem | null {
  let decoded: string
  try {
    decoded = decodeURIComponent(text)
  } catch {
    const detail = `The ${part} is not percent-encoded UTF-8. Write % as %25 and encode other characters as UTF-8.`
    return new Problem(400, 'BAD_ENCODING', detail)
  }
  if (!decoded.includes('\0')) return null
  return new Problem(400, 'NUL_CHARACTER', `The ${part} holds the character NUL (%00). Leave it out.`)
}

/** No operation takes a list by repeating a parameter: which of two values counts would be a guess. */
function repeated(path: string, query: string): Problem | null {
  if (!path.startsWith('/api/')) return null
  const names = [...new URLSearchParams(query).keys()]
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice === undefined) return null
  const errors = [{ in: 'query', field: twice, message: 'is given more than once' }]
  return new Problem(422, 'INVALID', `${twice}: is given more than once. Send it once.`, { fields: { errors } })
}
