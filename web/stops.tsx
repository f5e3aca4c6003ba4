import { useState } from 'react'
import { describeStop, type KindStop, nameScope } from '../domain/stop.ts'
import { ask, readAgain, useAsk } from './api.ts'
import { Choice, ReasonField, toIsoTime, UntilField, useDraft } from './fields.tsx'
import { Inert, inertText } from './inert.tsx'
import { Confirm } from './page-frame.tsx'
import { useMissing } from './permissions.ts'

const everyMs = 30_000

/** Lists the current stops that people set. */
export function Stops() {
  const stops = useAsk<{ items: KindStop[] }>(['stops'], '/stops', { refetchInterval: everyMs })
  return stops.data?.items.map((stop) => <Stopped key={stop.id} stop={stop} />)
}

function Stopped({ stop }: { stop: KindStop }) {
  const refused = useMissing('decide')
  const [reason, setReason] = useDraft(`resume ${stop.id}`)
  const run = async () => {
    await ask(`/stops/${stop.id}/resume`, { method: 'POST', body: { reason: reason.trim() } })
    setReason('')
  }
  return (
    <div className="said lamp row wraps">
      <span>
        <strong>Stopped:</strong> <Inert text={`${nameScope(stop)}, ${describeStop(stop)}`} />
      </span>
      <Confirm
        button="Resume"
        label={inertText(nameScope(stop))}
        title="Allow these writes again?"
        refused={refused}
        run={() => run().finally(readAllAgain)}
      >
        <p className="soft wraps">Trust levels, grants and the policy apply again as before.</p>
        <ReasonField
          id={`resume-${stop.id}`}
          label="Reason (recorded in the audit log)"
          value={reason}
          onChange={setReason}
        />
      </Confirm>
    </div>
  )
}

const readAllAgain = () => void readAgain(['stops'], ['trust'], ['status'], ['home'], ['approvals'])

type KindProps = { type: string; tools: readonly string[] }
const everyWrite = ''

/** Stops a kind of write for the complete site: by one of these tools, or by all. */
export function StopKind({ type, tools }: KindProps) {
  const refused = useMissing('decide')
  const [tool, setTool] = useState(tools[0] ?? everyWrite)
  const [until, setUntil] = useState('')
  const [reason, setReason] = useDraft(`stop of ${type}`)
  const run = async () => {
    const body = { type, tool: tool === everyWrite ? null : tool, until: toIsoTime(until), reason: reason.trim() }
    await ask('/stops', { method: 'POST', body })
    setReason('')
  }
  const options = [...tools.map((each) => [each, inertText(each)] as const), [everyWrite, 'every write'] as const]
  return (
    <Confirm
      button="Stop this kind"
      label={`of write in ${inertText(type)}`}
      title={`Stop this kind of write in all incidents of type ${inertText(type)}?`}
      refused={refused}
      run={() => run().finally(readAllAgain)}
    >
      <p className="soft wraps">
        From now on the agent neither requests nor begins such a write. It records the write and continues its
        investigation without it. A write that has begun is finished. People can still act themselves.
      </p>
      <Choice name="stop-tool" legend="What is stopped?" options={options} value={tool} onChange={setTool} />
      <UntilField
        id="stop-until"
        label="Until when? Empty: until somebody resumes these writes."
        required={false}
        value={until}
        onChange={setUntil}
      />
      <ReasonField id="stop-reason" label="Reason (people and the agent read it)" value={reason} onChange={setReason} />
    </Confirm>
  )
}
