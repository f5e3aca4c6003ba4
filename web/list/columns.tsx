import { ChevronDown, ChevronRight, PanelRight } from 'lucide-react'
import { formatSpan, truncate } from '../../domain/format.ts'
import type { ListedIncident } from '../../domain/incident-detail.ts'
import { remarks } from '../../domain/status-words.ts'
import type { Column } from '../data-table.tsx'
import { Inert, inertText, TextLink } from '../inert.tsx'
import { Mark, Resource, SeverityMark, statuses, TypeName } from '../marks.tsx'
import { formatMoment } from '../time.ts'
import { countStatuses, type IncidentGroup, type ListLine, sayOwners } from './lines.ts'

/** Actions on the rows themselves. No such action changes an incident. */
type RowPresses = {
  chosen: ReadonlySet<string>
  onChoose(line: ListLine): void
  onLook(line: ListLine): void
  onTurn(line: ListLine): void
  /** True if the list has more pages. A group then shows that it counts only this page. */
  isPart: boolean
}

/** Returns the columns of a list of incidents, with ages as of `now`. */
export function columnsAt(now: number, presses: RowPresses): Column<ListLine>[] {
  return [
    { head: 'Chosen', isUnseen: true, className: 'pick', cell: (line) => <Pick line={line} {...presses} /> },
    {
      head: 'Severity',
      isUnseen: true,
      className: 'sev',
      cell: ({ incident, group }) => <SeverityMark severity={(group ?? incident).severity} isShort />,
    },
    {
      head: 'What',
      className: 'what',
      cell: (line) => (line.group ? <GroupTitle line={line} group={line.group} {...presses} /> : <Title {...line} />),
    },
    {
      head: 'Now',
      className: 'now',
      cell: ({ incident, group }) => (group ? <Standings group={group} /> : <Now incident={incident} />),
    },
    {
      head: 'Owner',
      className: 'owner',
      cell: ({ incident, group }) => {
        const owner = group ? sayOwners(group) : incident.owner?.name
        return owner ? <Inert text={owner} /> : <span className="soft">–</span>
      },
    },
    {
      head: 'Age',
      className: 'since num',
      hint: ({ incident, group }) => formatMoment(group?.since ?? incident.createdAt),
      cell: ({ incident, group }) => formatSpan(now - Date.parse(group?.since ?? incident.createdAt)),
    },
    { head: '', className: 'look', cell: (line) => line.group === null && <Look line={line} {...presses} /> },
  ]
}

/** Lists the incidents of a row: one, or all of its group. */
export const incidentsOf = ({ incident, group }: ListLine): readonly ListedIncident[] => group?.members ?? [incident]

/** Returns the style of a row. `current` is the row under the keyboard cursor. */
export function rowProps({ id, incident, group, isSetIn }: ListLine, current: string | null) {
  const isOver = group ? group.members.every(({ closedAt }) => closedAt !== null) : incident.closedAt !== null
  const classes = [isOver && 'over', group && 'group', isSetIn && 'member'].filter((each) => each !== false && each)
  return {
    id: `row-${id}`,
    'data-current': id === current,
    ...(classes.length > 0 && { className: classes.join(' ') }),
  }
}

function Pick({ line, chosen, onChoose }: RowPresses & { line: ListLine }) {
  const about = line.group ? `the group of ${line.group.members.length}: ` : ''
  return (
    <input
      type="checkbox"
      aria-label={`Choose ${about}${inertText(truncate(line.incident.title, 80))}`}
      checked={incidentsOf(line).every(({ id }) => chosen.has(id))}
      onChange={() => onChoose(line)}
    />
  )
}

function Look({ line, onLook }: RowPresses & { line: ListLine }) {
  return (
    <button
      type="button"
      className="bare"
      aria-label={`Preview ${inertText(truncate(line.incident.title, 80))}`}
      title="Preview (Enter)"
      onClick={() => onLook(line)}
    >
      <PanelRight aria-hidden="true" />
    </button>
  )
}

function Title({ incident }: { incident: ListedIncident }) {
  const { id, title, resource } = incident
  return (
    <span className="two">
      <TextLink className="name" href={`/incidents/${id}`} title={title} text={title} />
      {resource && !title.includes(resource.id) && <Resource resource={resource} />}
    </span>
  )
}

function GroupTitle({ line, group, isPart, onTurn }: RowPresses & { line: ListLine; group: IncidentGroup }) {
  const Sign = group.isOpen ? ChevronDown : ChevronRight
  return (
    <span className="two">
      <button type="button" className="bare fold" aria-expanded={group.isOpen} onClick={() => onTurn(line)}>
        <Sign aria-hidden="true" />
        <span className="name">
          <GroupName line={line} group={group} />
        </span>
      </button>
      <span className="times">
        × {group.members.length}
        {isPart && ' on this page'}
      </span>
    </span>
  )
}

/** Shows what the incidents of a group have in common, or that it is unknown. */
function GroupName({ line: { incident }, group: { by, leader } }: { line: ListLine; group: IncidentGroup }) {
  if (by === 'alert') return incident.alertName === null ? 'without an alert' : <Inert text={incident.alertName} />
  if (by === 'resource') return incident.resource ? <Resource resource={incident.resource} /> : 'on no known resource'
  if (leader) return <Inert text={leader.title} />
  return (
    <>
      <TypeName type={incident.type} />, cause not investigated here
    </>
  )
}

function Standings({ group }: { group: IncidentGroup }) {
  const counts = countStatuses(group)
  const [first] = counts
  if (!first) return null
  const { shape, tone } = statuses[first[0]]
  return (
    <Mark
      shape={shape}
      tone={tone}
      word={counts.map(([status, count]) => `${count} ${statuses[status].word}`).join(', ')}
    />
  )
}

/** Shows the status of an incident with its remarks, and the newest row of its log. */
function Now({ incident }: { incident: ListedIncident }) {
  const { status, outcome, alerts, lastEvent } = incident
  const { shape, tone, word } = statuses[status]
  const isRepaired = status === 'resolved' && outcome === 'repaired'
  const said = remarks(incident)
  const isFiring = alerts.firing > 0 && incident.closedAt !== null && outcome !== 'expected'
  return (
    <Mark
      shape={shape}
      tone={isFiring ? 'broken' : isRepaired ? 'proved' : tone}
      word={
        <span title={lastEvent?.detail}>
          {[isRepaired ? 'repaired' : word, ...said.map((each) => inertText(each))].join(', ')}
          {lastEvent && (
            <span className="soft">
              {' · '}
              <Inert text={truncate(lastEvent.detail, 90)} />
            </span>
          )}
        </span>
      }
    />
  )
}
