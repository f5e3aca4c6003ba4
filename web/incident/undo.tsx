import { useState } from 'react'
import type { IncidentEvent } from '../../domain/event.ts'
import type { Incident } from '../../domain/incident.ts'
import type { ListedUndo, ShownUndo } from '../../domain/undo.ts'
import { ask, readAgain, useAsk } from '../api.ts'
import { CheckField, TextArea, useDraft } from '../fields.tsx'
import { Exact, Inert } from '../inert.tsx'
import { Confirm, QueryState, Section } from '../page-frame.tsx'
import { useMissing } from '../permissions.ts'
import { Link } from '../router.tsx'

const isWrite = (event: IncidentEvent) => event.kind === 'tool_finished' && event.metadata.effect === 'write'

/**
 * Lists the changes made in this incident, each with its undo: the call for it, or why there is
 * none.
 */
export function Undos({ incident, events }: { incident: Incident; events: readonly IncidentEvent[] }) {
  const hasWrites = events.some(isWrite)
  const listed = useAsk<{ items: ListedUndo[] }>(
    ['incident-undo', incident.id, incident.events],
    `/incidents/${incident.id}/undo`,
    { enabled: hasWrites, placeholderData: (before) => before },
  )
  if (!hasWrites) return null
  if (!listed.data) return <QueryState query={listed} what="what can be undone" />
  return (
    <Section className="stack tight" id="undo-title" title="Undo">
      {listed.data.items.map((write) => (
        <Write key={write.key} incidentId={incident.id} write={write} />
      ))}
    </Section>
  )
}

function Write({ incidentId, write }: { incidentId: string; write: ListedUndo }) {
  const { said, undo, refused, undos } = write
  const done = undos.find(({ standing }) => standing !== 'not_done')
  return (
    <div className="stack tight">
      <Inert as="p" className="wraps" text={said} />
      <p className="soft small wraps">
        {undo && refused === null && (
          <>
            This tool can undo the write: <Inert text={undo.tool} />. The tool works only if nothing has changed since
            the write.
          </>
        )}
        {refused && <Inert text={refused.detail} />}{' '}
        {done && <Link href={`/incidents/${done.incidentId}`}>See {done.incidentId}</Link>}
      </p>
      {undo && <Undo incidentId={incidentId} write={write} />}
    </div>
  )
}

function Undo({ incidentId, write }: { incidentId: string; write: ListedUndo }) {
  const { key, said, refused } = write
  const [isOpen, setOpen] = useState(false)
  const [reason, setReason] = useDraft(`undo of ${key}`)
  const [isWrong, setWrong] = useState(false)
  const path = `/effects/${encodeURIComponent(key)}/undo`
  const shown = useAsk<ShownUndo>(['undo', key], path, { enabled: isOpen })
  const keys = ['incident', 'events', 'incident-undo', 'brief', 'surroundings'].map((each) => [each, incidentId])
  const run = async () => {
    try {
      await ask(path, { method: 'POST', body: { reason: reason.trim(), ...(isWrong && { wrong: true }) } })
      setReason('')
    } finally {
      void readAgain(...keys)
    }
  }
  const open = () => {
    setOpen(true)
    void readAgain(['undo', key])
  }
  const why = useMissing('act_on_platform') ?? refused?.detail ?? null
  return (
    <div className="tools">
      <Confirm button="Undo" label={said} title="Undo this write" refused={why} onOpen={open} run={run}>
        <Look shown={shown} />
        <TextArea
          id={`undo-${key}`}
          label="Why?"
          rows={2}
          required
          minLength={3}
          maxLength={500}
          value={reason}
          onChange={setReason}
        />
        <CheckField checked={isWrong} onChange={setWrong}>
          The write was wrong: its tool loses trust in incidents of this type
        </CheckField>
      </Confirm>
    </div>
  )
}

/**
 * Shows the effect of an undo, and whether everything is still as the write left it, which is
 * checked now.
 */
function Look({ shown }: { shown: ReturnType<typeof useAsk<ShownUndo>> }) {
  if (!shown.data) return <QueryState query={shown} what="the current state" />
  const { undo, look, refused } = shown.data
  return (
    <>
      {undo && <Exact value={{ [undo.tool]: undo.arguments }} label={`arguments of ${undo.tool}`} />}
      <Inert as="p" className={refused ? 'strong wraps' : 'wraps'} text={refused?.detail ?? look?.observed ?? ''} />
      <p className="soft small">
        Code judges the undo like any write. Nightshift asks another person to approve it if needed. The undo runs once,
        and only if nothing has changed since the write.
      </p>
    </>
  )
}
