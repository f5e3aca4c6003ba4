const maxLinkChars = 2_000

/** An http(s) address in its normal form, or null: nothing else is ever put behind a link on a page. */
export function linkOf(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > maxLinkChars) return null
  const url = URL.parse(value)
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) return null
  // `https://runbooks.example.com@evil.example` reads as the wrong host, and a password does not belong in a page.
  if (url.username !== '' || url.password !== '') return null
  return url.href.length <= maxLinkChars ? url.href : null
}
