import { Inert } from '../inert.tsx'
import { kinds, Remarks, Resource, SeverityMark, StatusMark, TypeName } from '../marks.tsx'
import { useNow } from '../now.ts'
import { Link } from '../router.tsx'
import { moment, span } from '../time.ts'
import type { ListedIncident } from './query.ts'

export function IncidentTable({ items, current }: { items: ListedIncident[]; current: string | null }) {
  const now = useNow()
  return (
    <table>
      <caption className="visually-hidden">Incidents, newest first</caption>
      <thead>
        <tr>
          <th scope="col">Severity</th>
          <th scope="col" className="wide">
            Status
          </th>
          <th scope="col">Incident</th>
          <th scope="col" className="wide">
            Type
          </th>
          <th scope="col" className="wide">
            Role
          </th>
          <th scope="col" className="wide num">
            Age
          </th>
          <th scope="col" className="wide">
            Last event
          </th>
        </tr>
      </thead>
      <tbody>
        {items.map((incident) => (
          <Row key={incident.id} incident={incident} now={now} isCurrent={incident.id === current} />
        ))}
      </tbody>
    </table>
  )
}

function Row({ incident, now, isCurrent }: { incident: ListedIncident; now: number; isCurrent: boolean }) {
  const { id, severity, status, title, type, role, resource, createdAt, lastEvent } = incident
  const age = span(now - Date.parse(createdAt))
  return (
    <tr id={`row-${id}`} data-current={isCurrent}>
      <td>
        <SeverityMark severity={severity} />
      </td>
      <td className="wide">
        <StatusMark status={status} />
        <Remarks incident={incident} />
      </td>
      <td>
        <Link className="title" href={`/incidents/${id}`}>
          <Inert text={title} />
        </Link>
        <div className="small">
          <Resource resource={resource} />
        </div>
        <div className="under small">
          <StatusMark status={status} /> <span className="soft">· {age}</span>
          <Remarks incident={incident} />
        </div>
      </td>
      <td className="wide mono">
        <Link className="plain" href={`/incidents?type=${type}`} title={`Only ${type}`}>
          <TypeName type={type} />
        </Link>
      </td>
      <td className="wide">{role ?? <span className="soft">–</span>}</td>
      <td className="wide num nowrap" title={moment(createdAt)}>
        {age}
      </td>
      <td className="wide">{lastEvent && <Last event={lastEvent} now={now} />}</td>
    </tr>
  )
}

function Last({ event, now }: { event: NonNullable<ListedIncident['lastEvent']>; now: number }) {
  const detail = event.detail.length > 90 ? `${event.detail.slice(0, 88)}…` : event.detail
  return (
    <>
      <span className="soft nowrap">
        {span(now - Date.parse(event.at))} ago · {kinds[event.kind]?.word ?? event.kind}
      </span>
      <div className="small wraps">
        <Inert text={detail} />
      </div>
    </>
  )
}
