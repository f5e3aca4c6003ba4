import { chatRequest, conversationOf } from '../../../lab/runbook/conversation.ts'
import { decide } from '../../../lab/runbook/decide.ts'
import type { OperatorTurn, RunbookCall } from '../../../lab/runbook/facts.ts'

export type Answer =
  | { data: unknown; verification?: { outcome: string; observed: string } }
  | { code: string; message?: string; details?: object }
export type Alert = {
  type: string
  labels?: Record<string, string>
  annotations?: Record<string, string>
  resource?: { kind: string; id: string } | null
  title?: string
  status?: 'firing' | 'resolved'
  hint?: string
  neighbours?: { kind: string; id: string }[]
}

/** The messages that an investigation begins with. */
export function opening({
  type,
  labels = {},
  annotations = {},
  resource = null,
  title = type,
  status = 'firing',
  hint,
  neighbours = [],
}: Alert): object[] {
  const context = {
    incident: { id: 'inc_1', type, severity: 'critical', title, resource, status: 'investigating' },
    alerts: [{ labels, annotations, startsAt: '2026-01-01T00:00:00Z', status }],
    resource: null,
    neighbours,
    activeAlerts: [],
    precedents: [],
    hint: hint ?? null,
  }
  return [
    { role: 'system', content: 'You are an operator.' },
    { role: 'user', content: `Investigate.\n<<<DATA incident_context\n${JSON.stringify(context)}\nDATA>>>\nBegin.` },
  ]
}

/**
 * Plays an investigation to its end, in the real message formats, against a world that is a
 * function from call to answer. Returns one text per turn: tools with their telling argument, or
 * what was answered; what it records of the cause beside them is in `causes`.
 */
export async function play(
  protocol: 'native' | 'json',
  alert: Alert,
  world: (call: RunbookCall, nth: number) => Answer | Promise<Answer>,
): Promise<{ turns: string[]; calls: RunbookCall[]; causes: RunbookCall['args'][]; last: OperatorTurn }> {
  const messages = opening(alert)
  const turns: string[] = []
  const calls: RunbookCall[] = []
  const causes: RunbookCall['args'][] = []
  let seq = 0
  for (;;) {
    const tools = protocol === 'native' ? [{ type: 'function', function: { name: 'any' } }] : undefined
    const decision = decide(conversationOf(chatRequest.parse({ model: 'runbook-rules', messages, tools })))
    if (!('calls' in decision)) return { turns: [...turns, 'answer'], calls, causes, last: decision }
    turns.push(
      decision.calls
        .filter((each) => !isCause(each))
        .map(brief)
        .join(' + '),
    )
    const toolCalls = decision.calls.map(({ tool, args }, i) => ({
      id: `call_${turns.length}_${i}`,
      type: 'function',
      function: { name: tool, arguments: JSON.stringify(args) },
    }))
    messages.push(
      protocol === 'native'
        ? { role: 'assistant', content: decision.say, tool_calls: toolCalls }
        : {
            role: 'assistant',
            content: JSON.stringify({
              tool_call: { name: decision.calls[0]!.tool, parameters: decision.calls[0]!.args },
            }),
          },
    )
    for (const [i, call] of decision.calls.entries()) {
      if (isCause(call)) causes.push(call.args)
      else calls.push(call)
      const nth = calls.filter(({ tool }) => tool === call.tool).length
      const answer = isCause(call) ? { data: { recorded: true } } : await world(call, nth)
      const proof = 'verification' in answer && answer.verification ? { verification: answer.verification } : {}
      const meta = { seq: isCause(call) ? 1_000 + causes.length : ++seq, tool: call.tool, ...proof }
      const envelope =
        'data' in answer
          ? { ok: true, data: answer.data, meta }
          : { ok: false, error: { blocked: true, failed: false, retryable: false, message: '', ...answer }, meta }
      const ended = 'data' in answer && ['resolve_incident', 'escalate_incident'].includes(call.tool)
      if (ended) return { turns, calls, causes, last: decision }
      const content = JSON.stringify(envelope)
      messages.push(
        protocol === 'native'
          ? { role: 'tool', tool_call_id: toolCalls[i]!.id, content }
          : { role: 'user', content: `<<<DATA tool_result\n${content}\nDATA>>>` },
      )
    }
    if (turns.length > 20) throw new Error(`no end after ${turns.join(', ')}`)
  }
}

const isCause = ({ tool, args }: RunbookCall): boolean => tool === 'add_incident_event' && args.hypothesis !== undefined

function brief({ tool, args }: RunbookCall): string {
  const telling = args.outcome ?? args.node ?? args.vm ?? args.proposal_id ?? args.category ?? args.use_rack_constraints
  return telling === undefined ? tool : `${tool} ${telling}`
}
