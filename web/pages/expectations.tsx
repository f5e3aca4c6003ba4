import { useQuery } from '@tanstack/react-query'
import type { Expectation } from '../../domain/alert.ts'
import { formatSpan } from '../../domain/format.ts'
import { ask, type Page, queryClient } from '../api.ts'
import { Confirm } from '../confirm.tsx'
import { Inert, inertText } from '../inert.tsx'
import { useLive } from '../live.tsx'
import { QueryState } from '../page-frame.tsx'
import { missing, useSession } from '../session.ts'
import { formatMoment, useNow } from '../time.ts'

const key = ['expectations']

/** What fires and is expected, with a way to take each mark back. Nothing where none is in force. */
export function Expectations() {
  const { data: session } = useSession()
  const now = useNow()
  const marks = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => ask<Page<Expectation>>('/expectations', { signal }),
  })
  useLive(({ kind }) => void (kind === 'noted' && queryClient.invalidateQueries({ queryKey: key })))
  if (marks.error) return <QueryState query={marks} what="what is expected" />
  const items = (marks.data?.items ?? []).filter(({ inForce, until }) => inForce && Date.parse(until) > now)
  if (items.length === 0) return null
  const refused = missing(session, 'manage_incident')
  return (
    <section className="stack tight expected" aria-labelledby="expected-title">
      <h2 id="expected-title">Expected</h2>
      <div className="sheet">
        <ul className="things">
          {items.map((mark) => (
            <li key={mark.id} className="row between">
              <MarkText mark={mark} now={now} />
              <Confirm
                button="Take back"
                label={`the mark on ${inertText(mark.about)}`}
                title="Take this mark back"
                refused={refused}
                run={async () => {
                  await ask(`/expectations/${mark.id}/end`, { method: 'POST' })
                  await queryClient.invalidateQueries({ queryKey: key })
                }}
              >
                <p>What fires from now on goes the normal way: people are notified and it is investigated.</p>
              </Confirm>
            </li>
          ))}
        </ul>
      </div>
    </section>
  )
}

const subjects = { alert: 'alert', resource: 'all on', type: 'all of type' }

function MarkText({ mark, now }: { mark: Expectation; now: number }) {
  const { subject, about, until, reason, state, createdBy } = mark
  return (
    <div className="stack tight">
      <div className="row">
        <strong className="wraps">
          {subjects[subject]} <Inert text={about} />
        </strong>
        <span className="soft small" title={formatMoment(until)}>
          {formatSpan(Date.parse(until) - now)} left, by <Inert text={createdBy} />
        </span>
      </div>
      <p className="wraps">
        <Inert text={reason} />
      </p>
      {typeof state.observed === 'string' && (
        <p className="soft small wraps">
          When it was marked: <Inert text={state.observed} />
        </p>
      )}
    </div>
  )
}
