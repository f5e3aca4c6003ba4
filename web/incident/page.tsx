import { Heading } from '../heading.tsx'
import { Inert, inertText } from '../inert.tsx'
import { usePlace } from '../router.tsx'
import { Failed, Loading } from '../states.tsx'
import { Actions } from './actions.tsx'
import { Facts } from './facts.tsx'
import { Note } from './note.tsx'
import { Progress, Waiting } from './progress.tsx'
import { useIncident } from './query.ts'
import { Report } from './report.tsx'
import { Timeline } from './timeline.tsx'

export function IncidentPage({ id }: { id: string }) {
  const place = usePlace()
  const { incident, surroundings, events } = useIncident(id)
  if (incident.isPending) return <Loading what="the incident" />
  if (!incident.data) {
    return (
      <>
        <Heading title="Incident" />
        <Failed error={incident.error} isKept={incident.data !== undefined} again={() => void incident.refetch()} />
      </>
    )
  }
  return (
    <div className="stack">
      <header className="incident-head">
        <Heading title={inertText(incident.data.title)}>
          <Inert text={incident.data.title} />
        </Heading>
        <Actions incident={incident.data} surroundings={surroundings.data ?? null} />
      </header>
      {incident.error && (
        <Failed error={incident.error} isKept={incident.data !== undefined} again={() => void incident.refetch()} />
      )}
      <Progress incident={incident.data} surroundings={surroundings.data ?? null} events={events.data ?? []} />
      {incident.data.status === 'awaiting_approval' && <Waiting incidentId={id} />}
      {incident.data.status === 'escalated' && <Report events={events.data ?? []} />}
      <Facts incident={incident.data} surroundings={surroundings.data ?? null} events={events.data ?? []} />
      {surroundings.error && (
        <Failed
          error={surroundings.error}
          isKept={surroundings.data !== undefined}
          again={() => void surroundings.refetch()}
        />
      )}
      {events.isPending && <Loading what="the timeline" />}
      {events.error && (
        <Failed error={events.error} isKept={events.data !== undefined} again={() => void events.refetch()} />
      )}
      {events.data && <Timeline events={events.data} place={place} incidentId={id} />}
      <Note incidentId={id} refused={surroundings.data?.actions.find(({ action }) => action === 'comment')?.refused} />
    </div>
  )
}
