import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { escalationReason } from '../../activities/reason.ts'
import { escalationReport, reportText } from '../../domain/escalation.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { plainWords } from '../../domain/say.ts'
import type { EscalationCode } from '../../workflows/outcome.ts'
import { logOf, looked, row, verified, wrote } from '../support/events.ts'

const incident = {
  title: 'Replication lag on db-osl-1',
  severity: 'critical',
  resource: { kind: 'shard', id: 'db-osl-1' },
  attempt: 1,
  createdAt: '2026-11-22T02:00:00.000000Z',
} as const
const shard = { kind: 'shard', id: 'db-osl-1' } as const

const answered = (content: string) =>
  row('model_answered', { content, calls: [], usage: { promptTokens: 1, completionTokens: 1 } })
const rows: IncidentEvent[] = [
  looked('c1_0', [shard]),
  wrote('c2_0', [shard]),
  verified('c2_0', 'not_held'),
  row('approval_requested', { approvalId: 'apr_1', summary: 'Start 3 VMs' }),
  row('approval_decided', { approvalId: 'apr_1', decision: 'deny', reason: null }),
  answered('{"tool_call": {"name": "get_node", "parameters": {"id": "n"}}} I would look at the replica next.'),
]

/**
 * Every way in which code ends a run. The type keeps it whole: a new code without an entry does not
 * compile.
 */
const codes: Record<EscalationCode, true> = {
  CONTEXT_FAILED: true,
  MODEL_UNAVAILABLE: true,
  TURN_LIMIT: true,
  TIME_BUDGET: true,
  TOKEN_BUDGET: true,
  MONEY_BUDGET: true,
  BYTE_BUDGET: true,
  LOOP: true,
  CORRECTION_LIMIT: true,
  UNPROVEN_ANSWER: true,
  APPROVAL_EXPIRED: true,
  APPROVAL_LOOP: true,
  INDETERMINATE: true,
  ACT_FAILED: true,
  UNKNOWN_OUTCOME: true,
}
const byOthers = ['AGENT', 'PERSON', 'TAKEN', 'ALERT_GOES_ON', 'DOES_NOT_LAST', 'WATCHDOG_SILENT', 'WATCHDOG_UNEXPIRED']
const isPlain = (text: string) => !/[{}]|":\s/.test(text)

describe('the summary of an escalated incident for a person', () => {
  test.each([...Object.keys(codes), ...byOthers])(
    '%s: what, how bad, where, since when, found, changed, next step',
    (code) => {
      const events = logOf(...rows)
      const said =
        code in codes
          ? escalationReason(code as EscalationCode, events).reason
          : 'The replica cannot reach its primary.'
      const report = escalationReport(incident, events, {
        code,
        said,
        nextStep: null,
        since: '2026-11-22T01:30:00.000000Z',
      })
      const text = reportText(report, 'https://nightshift.example/incidents/inc_1')
      for (const part of ['Replication lag on db-osl-1', 'critical', 'shard db-osl-1', '2026-11-22 01:30 UTC']) {
        expect(text).toContain(part)
      }
      expect(text).toContain('Changed: converge_shard on shard:db-osl-1: Verification failed')
      expect(text).toContain('Denied: Start 3 VMs (no reason given)')
      expect(text).toContain('https://nightshift.example/incidents/inc_1')
      expect(report.found.length).toBeGreaterThan(0)
      expect(report.nextStep.length).toBeGreaterThan(10)
      expect(isPlain(text)).toBe(true)
    },
  )

  test('the advice of the agent comes before the advice of code', () => {
    const report = escalationReport(incident, [], {
      code: 'AGENT',
      said: null,
      nextStep: 'Replace the disk',
      since: null,
    })
    expect(report.nextStep).toBe('Replace the disk')
    expect(report.since).toBe('2026-11-22 02:00 UTC')
  })
})

describe('words of a model that answers in JSON are quoted without the JSON', () => {
  test.each([
    ['{"final_answer": {"summary": "The disk is full.", "confidence": "high"}}', 'The disk is full'],
    ['```json\n{"reason": "No space left on device", "code": 28}\n```', 'No space left on device'],
    ['I looked. {"tool_call": {"name": "x", "parameters": {"id": "n"}}} Then I stopped.', 'I looked. Then I stopped.'],
    ['{"name": "get_node", "parameters": {"id": "node-1"}}', 'No readable text'],
    ['The answer is {"name": "get_node", "par', 'The answer is'],
    ['', 'No readable text'],
    ['A plain sentence, 97% full.', 'A plain sentence, 97% full.'],
    ['`up{job="x"} == 0` holds, see {"query": "up{job=\\"x\\"}"}', '`up{job="x"} == 0` holds, see'],
    ['{"summary": "No line fits {app=\\"web\\"} |= \\"err\\"."}', 'No line fits {app="web"} |= "err"'],
    ["I ran awk '{print $2}' and read {name: get_node} and {}.", "I ran awk '{print $2}' and read and ."],
  ])('%s', (said, words) => {
    expect(plainWords(said)).toBe(words)
  })

  test('no message with braces wakes a person, whatever the model wrote', () => {
    const opensObject = /\{\s*(?:\}|"[^"{}]*"\s*:)/
    const plain = (text: string) => {
      const words = plainWords(text)
      expect(words).not.toMatch(opensObject)
      expect(words).not.toMatch(/":\s/)
    }
    // A brace or a quote inside a text of an object is read as the object's own.
    const object = fc
      .json()
      .filter((json) => !/"(?:[^"\\]|\\.)*(?:[{}]|\\")/.test(json.replaceAll(/[{}](?=(?:[^"]*"[^"]*")*[^"]*$)/g, ' ')))
    const around = fc.string().filter((text) => !/[{}"]/.test(text))
    fc.assert(fc.property(object, plain))
    fc.assert(fc.property(object, around, (json, text) => plain(`${text} ${json} ${text}`)))
    fc.assert(fc.property(object, fc.nat(200), (json, cut) => plain(json.slice(0, cut))))
  })
})
