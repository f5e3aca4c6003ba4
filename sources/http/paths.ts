/**
 * Which pages of a server may be read. A path of a model is taken apart, judged in its parts, and put together again from them, so that what was judged is
 * what is sent. What servers and proxies read in different ways (dot segments, encoded separators, double encodings, parameters of a segment) is refused.
 */
export type HttpPath = { segments: readonly string[]; query: readonly (readonly [string, string])[] }

/** As `/api/nodes-*?limit&page`: `*` stands for a part of one segment, `**` at the end for all below; names of the query that may be given. */
export type PathPattern = { segments: readonly string[]; queryKeys: readonly string[] }

const mostValueCharacters = 200
const mostStars = 2
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
const unsafe = /[\u0000-\u001f\u007f/\\%;?#]/
const queryKey = /^[A-Za-z0-9_.[\]-]{1,60}$/

/** A path in its parts, or why it cannot be read. */
export function readPath(text: string): HttpPath | string {
  if (!text.startsWith('/')) return 'a path begins with /: the server is that of the source'
  const strange = /[^\x21-\x7e]|[\\#;"<>^`{|}*]/.exec(text)?.[0]
  if (strange !== undefined) return `a path does not hold ${JSON.stringify(strange)}`
  const [path = '', ...rest] = text.split(/\?(.*)/s)
  const segments = readSegments(path)
  if (typeof segments === 'string') return segments
  const query = rest.length === 0 ? [] : readQuery(rest[0] ?? '')
  return typeof query === 'string' ? query : { segments, query }
}

/** The path as it is sent: each part encoded once. */
export function writePath({ segments, query }: HttpPath): string {
  const pairs = query.map((pair) => pair.map(encodeURIComponent).join('='))
  return `/${segments.map(encodeURIComponent).join('/')}${pairs.length > 0 ? `?${pairs.join('&')}` : ''}`
}

function readSegments(path: string): string[] | string {
  const found: string[] = []
  const raw = path.split('/').slice(1)
  for (const [at, each] of raw.entries()) {
    if (each === '' && at < raw.length - 1) return 'a path has no empty segment (//)'
    const segment = decode(each)
    if (segment === null) return `${JSON.stringify(each.slice(0, 60))} is not encoded as UTF-8 in %XX`
    // Some servers fold look-alikes such as U+FF0F to the plain character.
    const plain = segment.normalize('NFKC')
    if (unsafe.test(segment) || unsafe.test(plain))
      return `${JSON.stringify(each.slice(0, 60))} hides a separator, a percent sign or a control character`
    if (/^[. ]+$/.test(plain)) return 'a path has no dot segments (. and ..)'
    found.push(segment)
  }
  return found
}

function readQuery(text: string): [string, string][] | string {
  const found: [string, string][] = []
  for (const pair of text.split('&')) {
    const [key, value] = pair.split(/=(.*)/s).map((part) => decode(part.replaceAll('+', ' ')))
    if (key == null || !queryKey.test(key))
      return `${JSON.stringify(pair.slice(0, 60))} is no name and value of a query`
    if (value === null) return `the value of ${key} is not encoded as UTF-8 in %XX`
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
    if (value !== undefined && (value.length > mostValueCharacters || /[\u0000-\u001f\u007f]/.test(value)))
      return `the value of ${key} is longer than ${mostValueCharacters} characters, or holds a control character`
    if (found.some(([known]) => known === key)) return `the query has ${key} twice`
    found.push([key, value ?? ''])
  }
  return found
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/** A pattern of the list that an admin declares, or why it cannot be read. */
export function readPattern(text: string): PathPattern | string {
  const [path = '', keys] = text.split(/\?(.*)/s)
  const stars = path.split('/').map((each) => each.split('*').length - 1)
  const segments = readPath(path.replaceAll('*', 'x'))
  if (typeof segments === 'string') return segments
  const own = path
    .split('/')
    .slice(1)
    .map((each) => decode(each) ?? each)
  if (own.slice(0, -1).some((each) => each.includes('**')) || own.some((each) => each !== '**' && each.includes('**')))
    return '** stands alone, at the end'
  if (stars.some((count) => count > mostStars)) return `a segment has ${mostStars} * at most`
  const queryKeys = keys === undefined ? [] : keys.split('&')
  const wrong = queryKeys.find((key) => !queryKey.test(key))
  return wrong === undefined ? { segments: own, queryKeys } : `${JSON.stringify(wrong)} is no name of a query`
}

/** Does the pattern cover the path? A wildcard covers no name that begins with a dot (`.git`, `.env`): such a one is written out. */
export function isCovered({ segments, queryKeys }: PathPattern, path: HttpPath): boolean {
  if (!path.query.every(([key]) => queryKeys.includes(key))) return false
  const isOpen = segments.at(-1) === '**'
  const fixed = isOpen ? segments.slice(0, -1) : segments
  if (isOpen ? path.segments.length <= fixed.length : path.segments.length !== fixed.length) return false
  return path.segments.every((segment, at) => {
    const wanted = fixed[at]
    return wanted === undefined ? !segment.startsWith('.') : matches(wanted, segment)
  })
}

/** `*` for any characters, in steps that grow with the length alone. */
function matches(pattern: string, segment: string): boolean {
  if (!pattern.includes('*')) return pattern === segment
  const parts = pattern.split('*')
  const [first = '', last = ''] = [parts[0], parts.at(-1)]
  if (segment === '' || (first === '' && segment.startsWith('.'))) return false
  if (!segment.startsWith(first) || !segment.endsWith(last) || segment.length < first.length + last.length) return false
  let from = first.length
  for (const part of parts.slice(1, -1)) {
    const at = segment.indexOf(part, from)
    if (at < 0 || at + part.length > segment.length - last.length) return false
    from = at + part.length
  }
  return true
}
