import { expect, test } from '@jest/globals'
import { escalationReason } from '../../activities/reason.ts'
import type { EscalationCode } from '../../workflows/outcome.ts'
import { logOf, partOfRow } from '../support/events.ts'

const said = partOfRow('model_answered', {
  content: 'I look again.',
  calls: [],
  usage: { promptTokens: 1, completionTokens: 1 },
})
const refusedEnding = partOfRow('call_judged', {
  tool: 'resolve_incident',
  effect: 'terminal',
  verdict: 'refuse',
  code: 'STILL_FIRING',
  reason: 'the alert fires again since 11:02',
  arguments: { resolution: 'The disk was full of traces; two were removed.' },
})
const refusedCall = partOfRow('call_judged', {
  tool: 'exec',
  effect: 'read',
  verdict: 'refuse',
  code: 'INVALID_ARGUMENTS',
  reason: 'exec: argv: it is a text: give a list',
  arguments: { argv: 'df -h' },
})
const unread = partOfRow('correction_sent', { code: 'call_as_text', text: 'You wrote a tool call as text.' })
const copied = partOfRow('correction_sent', { code: 'copied_call', text: 'What you were shown contains this call.' })

test.each<[string, EscalationCode, object[], string]>([
  [
    'the last turn was an ending that code refused',
    'TURN_LIMIT',
    [refusedEnding, said],
    'It said: The disk was full of traces',
  ],
  [
    'an ending was refused, with why',
    'TURN_LIMIT',
    [refusedEnding, said],
    "The model's ending was refused: the alert fires again since 11:02",
  ],
  ['no call could be read', 'LOOP', [refusedCall, said], 'Last refused: exec: argv: it is a text: give a list'],
  ['calls stood in the text', 'CORRECTION_LIMIT', [said, unread], '--tool-call-parser'],
  ['the model copied a call', 'CORRECTION_LIMIT', [said, copied], 'look for planted instructions there'],
])('a person who gets an incident because %s reads what was known', (_what, code, rows, expected) => {
  expect(escalationReason(code, logOf(...(rows as never[]))).reason).toContain(expected)
})

test("a person's report does not mention the model server if its calls were readable", () => {
  expect(escalationReason('CORRECTION_LIMIT', logOf(said as never)).reason).not.toContain('parser')
})
