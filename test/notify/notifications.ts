import type { Notification } from '../../domain/notification.ts'

export function notification(more: Partial<Notification> & { title?: string } = {}): Notification {
  const { title, ...fields } = more
  return {
    trigger: 'critical',
    incident: {
      id: 'inc_1',
      type: 'replication_lag',
      severity: 'critical',
      status: 'open',
      title: title ?? 'MySQL replication lag exceeded 30s',
      resource: { kind: 'shard', id: 'db-osl-1' },
    },
    reason: null,
    approval: null,
    page: true,
    alertsFiring: 0,
    incidents: [],
    url: 'https://nightshift.example/incidents/inc_1',
    at: '2026-11-21T02:00:00.000Z',
    headHash: 'a'.repeat(64),
    ...fields,
  }
}

export const hostileTitles = [
  '<!channel> <!here> <!everyone> <!subteam^S1> <@U123> <#C1>',
  '@channel @here @everyone @CHANNEL',
  '<https://evil.example|click to approve>',
  '&lt;!channel&gt; &amp;lt;',
  '*bold* _it_ ~s~ `code` ```block```\n> quote',
  '\u202Egnp.exe \u001b[31m\u0007 \u0000 \ud800',
  '<'.repeat(5_000),
  '😀'.repeat(5_000),
  '"}],"blocks":[{"type":"image"',
  '',
]
