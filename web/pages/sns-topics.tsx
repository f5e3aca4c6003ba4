import type { SnsTopic } from '../../domain/sns-topic.ts'
import { ask, type ListPage, readAgain, useAsk } from '../api.ts'
import { type Column, Table } from '../data-table.tsx'
import { Inert } from '../inert.tsx'
import { Confirm, Failed } from '../page-frame.tsx'
import { useMissing } from '../permissions.ts'
import { formatMoment } from '../time.ts'

/** Lists topics of Amazon SNS: those that wait for a person, and those that are confirmed. */
export function SnsTopics() {
  const mayRead = useMissing('read_config') === null
  const refused = useMissing('write_config')
  const topics = useAsk<ListPage<SnsTopic>>(['sns-topics'], '/sns/topics', {
    refetchInterval: 10_000,
    enabled: mayRead,
  })
  if (topics.error) return <Failed error={topics.error} isKept={topics.data !== undefined} />
  if (!topics.data || topics.data.items.length === 0) return null
  const waiting = topics.data.items.filter(({ isWaiting }) => isWaiting).length
  return (
    <section className="stack" aria-label="Topics of Amazon SNS">
      <h2>Topics of Amazon SNS</h2>
      {waiting > 0 && (
        <p className="said lamp">
          <strong>{waiting === 1 ? '1 topic waits' : `${waiting} topics wait`} for a person.</strong> Until somebody
          confirms a topic, its alarms reach nobody. Confirm only a topic that is yours.
        </p>
      )}
      <div className="sheet narrow">
        <Table
          caption="Topics of Amazon SNS"
          items={topics.data.items}
          columns={columnsFor(refused)}
          toKey={({ id }) => id}
        />
      </div>
    </section>
  )
}

const columnsFor = (refused: string | null): Column<SnsTopic>[] => [
  { head: 'Topic', className: 'wraps', cell: ({ arn }) => <Inert text={arn} /> },
  {
    head: 'State',
    className: 'wraps',
    cell: ({ isWaiting, askedAt, confirmedAt, confirmedBy }) => (
      <>
        {isWaiting && `waits since ${formatMoment(askedAt)}`}
        {isWaiting && confirmedAt && '; '}
        {confirmedAt && (
          <>
            confirmed by <Inert text={confirmedBy ?? ''} />
          </>
        )}
      </>
    ),
  },
  {
    head: 'Decision',
    cell: (topic) => (
      <div className="row">
        {topic.isWaiting && (
          <Confirm
            button="Confirm"
            label={topic.arn}
            title="Confirm this topic"
            refused={refused}
            run={decide(topic, 'confirm')}
          >
            <p>
              Nightshift confirms the subscription of <Inert text={topic.arn} />
              at SNS, and accepts its alarms from now on.
            </p>
          </Confirm>
        )}
        <Confirm
          button="Remove"
          label={topic.arn}
          title="Remove this topic"
          refused={refused}
          run={decide(topic, 'remove')}
        >
          <p>
            Alarms of <Inert text={topic.arn} /> are refused from now on. The subscription stays in SNS. Delete it
            there.
          </p>
        </Confirm>
      </div>
    ),
  },
]

const decide =
  ({ id }: SnsTopic, what: 'confirm' | 'remove') =>
  async () => {
    await ask(`/sns/topics/${id}/${what}`, { method: 'POST' })
    await readAgain(['sns-topics'])
  }
