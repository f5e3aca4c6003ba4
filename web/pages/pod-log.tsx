import { useState } from 'react'
import type { PodGroup, PodLog } from '../../domain/cluster-now.ts'
import { formatCount } from '../../domain/format.ts'
import { useAsk } from '../api.ts'
import { CheckField, SelectField } from '../fields.tsx'
import { Inert } from '../inert.tsx'
import { Failed, Loading, Section } from '../page-frame.tsx'
import { formatTimeOfDay } from '../time.ts'
import { LogLines } from './pods.tsx'

/** Shows the newest lines of a pod, read only by a press, because each read is in the audit log. */
export function PodLogPane({ path, groups }: { path: string; groups: readonly PodGroup[] }) {
  const [pod, setPod] = useState('')
  const [container, setContainer] = useState('')
  const [previous, setPrevious] = useState(false)
  const [asked, setAsked] = useState<string | null>(null)
  const query = new URLSearchParams({
    ...(pod !== '' && { pod }),
    ...(container !== '' && { container }),
    ...(previous && { previous: 'true' }),
  }).toString()
  const log = useAsk<PodLog>(['pod-log', path, asked], `${path}/log?${asked}`, {
    enabled: asked !== null,
    retry: false,
  })
  const { data, error, isFetching, refetch } = log
  const names = groups.flatMap(({ pods }) => pods.map(({ name }) => name))
  if (names.length === 0) return null
  const containers = data && (pod === '' || data.pod === pod) ? data.containers : []
  const press = () => (asked === query ? void refetch() : setAsked(query))
  return (
    <Section className="stack tight" title="Log of a pod">
      <div className="row">
        <SelectField
          label="Pod"
          className="row pod-choice"
          value={pod}
          options={[['', 'the worst'], ...names.map((name) => [name, name] as const)]}
          onChange={(name) => {
            setPod(name)
            setContainer('')
          }}
        />
        {containers.length > 1 && (
          <SelectField
            label="Container"
            className="row pod-choice"
            value={container}
            options={[['', 'the worst'], ...containers.map((name) => [name, name] as const)]}
            onChange={setContainer}
          />
        )}
        <CheckField checked={previous} onChange={setPrevious}>
          of the container before it restarted
        </CheckField>
        <button type="button" onClick={press} disabled={isFetching}>
          {asked === query ? 'Read again' : 'Read the log'}
        </button>
      </div>
      {asked !== null && error && <Failed error={error} />}
      {isFetching && !data && <Loading what="the log" />}
      {data && !error && <ShownLog log={data} />}
    </Section>
  )
}

function ShownLog({ log: { pod, container, isPrevious, lines, isCut } }: { log: PodLog }) {
  const count = `${isCut ? 'the newest ' : ''}${formatCount(lines.length, 'line')}`
  return (
    <>
      <p className="soft small wraps">
        <Inert text={`${pod}, container ${container}`} />
        {isPrevious ? ' before it restarted' : ''}: {lines.length === 0 ? 'the container wrote nothing' : count}. Text
        that looks like a secret is left out.
      </p>
      {lines.length > 0 && (
        <LogLines label="Lines of the log" lines={lines.map(({ at, text }) => ({ at: formatTimeOfDay(at), text }))} />
      )}
    </>
  )
}
