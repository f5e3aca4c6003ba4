import type { AlertLinks } from './alert.ts'

const linkWords = [
  ['generator', 'Rule'],
  ['dashboard', 'Dashboard'],
  ['panel', 'Panel'],
  ['silence', 'Silence'],
  ['image', 'Image'],
  ['runbook', 'Runbook'],
  ['external', 'Sender'],
] as const

/** The links of an alert in the order in which people want them. Whatever was stored, only http(s) is a link. */
export function listLinks(links: AlertLinks): { word: string; href: string }[] {
  return linkWords.flatMap(([name, word]) => {
    const href = links[name]
    return typeof href === 'string' && /^https?:\/\//i.test(href) ? [{ word, href }] : []
  })
}
