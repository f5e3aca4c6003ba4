import type { Approval } from './approval.ts'

const doors: Record<string, string> = {
  ...{ api: 'API', cli: 'CLI', page: 'page', slack: 'Slack', signal: 'Temporal', update: 'Temporal', edit: 'an edit' },
}

/** `2026-11-21 14:03 UTC`: the minute is what people compare. */
export function minuteOf(time: string): string {
  return `${time.slice(0, 10)} ${time.slice(11, 16)} UTC`
}

/** What became of an approval so far, in sentences: who decided, when, by which door. Empty while nobody has said anything. */
export function settledLines(approval: Approval): string[] {
  const said = approval.decisions.map(({ operator, decision, category, reason, via, at }) => {
    const why = decision === 'deny' ? ` (${(category ?? 'other').replaceAll('_', ' ')}: ${reason ?? ''})` : ''
    return `${decision === 'approve' ? 'Approved' : 'Denied'} by ${operator}, ${minuteOf(at)}, by ${doors[via] ?? via}${why}`
  })
  if (approval.status === 'expired') said.push(`Expired: nobody decided by ${minuteOf(approval.expiresAt)}`)
  if (approval.status === 'withdrawn') {
    said.push(approval.edited ? `Withdrawn: ${approval.edited.by} changed the arguments` : 'Withdrawn: asked no more')
  }
  if (approval.status === 'pending' && said.length > 0) {
    said.push(`${approval.approvals} of ${approval.required} have agreed`)
  }
  return said
}
