import { ChevronDown, ChevronUp } from 'lucide-react'
import type { ServedBrief } from '../../domain/brief.ts'
import type { Incident } from '../../domain/incident.ts'
import type { ListedIncident } from '../../domain/incident-detail.ts'
import { causeWords, nameOfCause } from '../../domain/status-words.ts'
import { useAsk } from '../api.ts'
import { Drawer } from '../drawer.tsx'
import { DecisionSentence, Glance } from '../incident/brief.tsx'
import { Inert } from '../inert.tsx'
import { Fact } from '../marks.tsx'
import { QueryState } from '../page-frame.tsx'
import { Link } from '../router.tsx'

type PeekProps = {
  id: string
  /** The row of the list, which is available at once. Null if the page of the list lacks it. */
  listed: ListedIncident | null
  onClose(): void
  onStep(by: 1 | -1): void
  back(): HTMLElement | null
}

/** Shows one incident beside the list: what a decision needs, and links. */
export function Peek({ id, listed, onClose, onStep, back }: PeekProps) {
  const path = `/incidents/${encodeURIComponent(id)}`
  const found = useAsk<Incident>(['incident', id], path, { enabled: listed === null })
  const brief = useAsk<ServedBrief>(['brief', id], `${path}/brief`)
  const incident = listed ?? found.data
  const asked = brief.data?.asked
  const tools = (
    <>
      <button type="button" className="bare" aria-label="One up" title="One up (k)" onClick={() => onStep(-1)}>
        <ChevronUp aria-hidden="true" />
      </button>
      <button type="button" className="bare" aria-label="One down" title="One down (j)" onClick={() => onStep(1)}>
        <ChevronDown aria-hidden="true" />
      </button>
    </>
  )
  return (
    <Drawer title={incident?.title ?? 'An incident'} about={id} onClose={onClose} back={back} tools={tools}>
      <div className="stack">
        {listed === null && <QueryState query={found} what="the incident" />}
        {incident && <Glance incident={incident} brief={brief.data ?? null} />}
        <p className="row">
          <Link className="button" href={path}>
            Open
          </Link>
          {asked && (
            <Link className="button" href={`/approvals/${asked.id}`}>
              Review
            </Link>
          )}
        </p>
        <QueryState query={brief} what="the brief" />
        {asked && <DecisionSentence asked={asked} alsoAsked={brief.data?.alsoAsked ?? 0} />}
        {incident && brief.data && <Essence incident={incident} brief={brief.data} />}
      </div>
    </Drawer>
  )
}

/** Shows the result in sentences. The page of the incident has their rows. */
function Essence({ incident, brief }: { incident: Incident; brief: ServedBrief }) {
  const { cause, resource, impact, next, asked } = brief
  const how = [causeWords[cause.state], cause.certainty].filter(Boolean).join(', ')
  const facts: [string, string | null][] = [
    [nameOfCause(cause, incident.status), how ? `${cause.text} (${how})` : cause.text],
    ['Now', resource?.text ?? null],
    ['Impact', impact?.text ?? null],
    ['Owner', incident.owner?.name ?? 'nobody'],
    ['Next', asked ? null : next.text],
  ]
  return (
    <dl className="answer">
      {facts.map(
        ([name, text]) =>
          text !== null && (
            <Fact key={name} name={name}>
              <Inert className="wraps" text={text} />
            </Fact>
          ),
      )}
    </dl>
  )
}
