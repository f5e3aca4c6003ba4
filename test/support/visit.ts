/** What a browser sees of an answer. */
export type Seen = { status: number; location: string; cookies: Cookies; code: string | null; text: string }
export type Cookies = Record<string, string>

/** The header that brings these cookies along, if there are any. */
export function withCookies(cookies: Cookies): Record<string, string> {
  const pairs = Object.entries(cookies).map(([name, value]) => `${name}=${value}`)
  return pairs.length > 0 ? { cookie: pairs.join('; ') } : {}
}

export async function seenOf(response: Response): Promise<Seen> {
  const set = response.headers.getSetCookie().map((each) => /^([^=]+)=([^;]*)/.exec(each)?.slice(1) as [string, string])
  return {
    status: response.status,
    location: response.headers.get('location') ?? '',
    cookies: Object.fromEntries(set),
    code: response.headers.get('x-problem-code'),
    text: await response.text(),
  }
}
