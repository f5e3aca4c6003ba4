import { describe, expect, test } from '@jest/globals'
import { plainApproval } from '../../api/routes/approval-html.ts'
import { formatApproval } from '../../cli/approvals/card.ts'
import { type Approval, approval as schema } from '../../domain/approval.ts'
import { type PostconditionProof, verificationOutcomes } from '../../domain/envelope.ts'
import { formatVerification } from '../../domain/format-approval.ts'
import type { Incident } from '../../domain/incident.ts'
import { renderCard } from '../../notify/slack/card.ts'
import { tools } from '../../tools/registry.ts'

const writes = [...tools.values()].filter(({ effect }) => effect === 'write')

test('some writes prove themselves and some are proved by nothing', () => {
  expect(new Set(writes.map(({ proof }) => proof?.by))).toEqual(new Set(['state', 'nothing']))
})

test.each(writes.map((tool) => [tool.name, tool] as const))(
  '%s names what proves it, or that nothing does',
  (_, tool) => {
    expect(tool.proof).toEqual({
      by: expect.stringMatching(/^(state|nothing)$/),
      text: expect.stringMatching(/^.{10,}[^.]$/),
    })
    // Both are told by the same look: that nothing proves it is an answer, too.
    expect(tool.postcondition?.withinSeconds).toBeGreaterThan(0)
    // Where nothing proves it, a person is told where to look.
    if (tool.proof?.by === 'nothing') expect(tool.proof.text).toContain('afterwards')
  },
)

test('a command promises nothing, in any tool', () => {
  const carrying = writes.filter(({ command }) => command)
  expect(carrying.map(({ name, proof }) => [name, proof?.by])).toEqual([
    ['exec', 'nothing'],
    ['shell_eval', 'nothing'],
    ['docker_exec', 'nothing'],
  ])
})

test('each outcome has its own word, and one of another version is shown unchanged', () => {
  expect(new Set(verificationOutcomes.map(formatVerification)).size).toBe(4)
  expect(formatVerification('held_for_now')).toBe('held for now')
})

describe('a card shows before a decision', () => {
  const doors: [string, (proof: PostconditionProof | undefined) => string][] = [
    ['in the terminal', (proof) => formatApproval(asked(proof) as never)],
    [
      'without JavaScript',
      (proof) =>
        String(
          plainApproval(
            {
              ...asked(proof),
              evidence: [],
              run: null,
              next: [],
              together: [],
              approvers: ['bo'],
              asked: [],
              about: null,
              deaths: [],
              unheardAt: null,
            },
            { name: 'a', may: true, said: null },
          ),
        ),
    ],
    [
      'in Slack',
      (proof) => JSON.stringify(renderCard(asked(proof), { type: 't' } as Incident, 'https://x.example', 'b')),
    ],
  ]
  // Lines are broken where the door has no room.
  const told = (text: string) => text.replace(/\s+/g, ' ')

  test.each(doors)('%s, what will prove that it worked', (_, show) => {
    expect(told(show({ by: 'state', text: 'the process is gone' }))).toContain(
      'Code will verify this: the process is gone.',
    )
  })

  test.each(doors)('%s, that nothing will', (_, show) => {
    expect(told(show({ by: 'nothing', text: 'look at it yourself afterwards' }))).toContain(
      'Nothing can verify this: look at it yourself afterwards.',
    )
  })

  test.each(doors)('%s, that an approval of an earlier version has no stored verification', (_, show) => {
    expect(told(show(undefined))).toContain('has no stored verification')
  })
})

function asked(proof: PostconditionProof | undefined): Approval {
  return schema.parse({
    id: 'apr_1',
    incidentId: 'inc_1',
    attempt: 1,
    callId: 'c1_0',
    tool: 'exec',
    arguments: { argv: ['id'] },
    targets: [{ kind: 'node', id: 'node-osl-1' }],
    reason: 'because',
    risk: 'medium',
    reversible: false,
    required: 1,
    approvals: 0,
    actionDigest: 'd',
    stateFingerprint: 's',
    status: 'pending',
    useBy: null,
    requestedAt: '2026-11-21T02:00:00Z',
    expiresAt: '2026-11-21T02:10:00Z',
    decisions: [],
    dryRun: { possible: false, summary: 'Run it', details: {}, ...(proof && { proof }) },
  })
}
