/** The id of an incident or an approval in a text that was pasted: by itself, or inside an address or a sentence. Null without one. */
export function idIn(text: string | null | undefined): string | null {
  return /(?<![0-9a-z])(?:inc|apr)_[0-9a-z]{26}(?![0-9a-z])/.exec(text ?? '')?.[0] ?? null
}

/** Where the page shows it. */
export function pathOfId(id: string): string {
  return id.startsWith('apr_') ? `/approvals/${id}` : `/incidents/${id}`
}
