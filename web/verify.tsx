import { useMutation } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import type { z } from 'zod'
import type { AuditChain, Findings, verifiedIncident } from '../domain/chain.ts'
import { addFindings, formatCounts, noFindings } from '../domain/findings.ts'
import { formatNumber } from '../domain/format.ts'
import { ask } from './api.ts'
import { Inert } from './inert.tsx'
import { spelled } from './own-command.ts'
import { Failed, Section } from './page-frame.tsx'

type VerifiedPage = Findings & { events: number; nextCursor: string | null }

/** The result of a check: the compared rows, and the state of the hash chains. */
type Verified = Findings & { chains: { of: string; rows: number; head: string; problem: AuditChain['problem'] }[] }

/** Checks the stored data of an incident against its log and the audit log. */
export function VerifyIncident({ id }: { id: string }) {
  const run = async (): Promise<Verified> => {
    const { events, headHash, problem, ...found } = await ask<z.infer<typeof verifiedIncident>>(
      `/incidents/${id}/verify`,
    )
    return { ...found, chains: [{ of: 'the log', rows: events, head: headHash, problem }] }
  }
  return (
    <Verify run={run}>
      Code compares what is stored about this incident with its log and the audit: its row, alerts, approvals, votes,
      writes and decision tokens.
    </Verify>
  )
}

/** Checks everything, one page after the other. */
export function VerifyAll() {
  const run = async (tell: (done: string) => void): Promise<Verified> => {
    const found = noFindings()
    let cursor: string | null = null
    do {
      const page: VerifiedPage = await ask(`/verify?limit=20${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`)
      addFindings(found, page)
      tell(formatCounts(found.checked))
      cursor = page.nextCursor
    } while (cursor)
    const { rows, headHash, problem } = await ask<AuditChain>('/audit/verify')
    return { ...found, chains: [{ of: 'the audit', rows, head: headHash, problem }] }
  }
  return (
    <Verify run={run}>
      Code compares all stored data about authority and evidence with the logs and the audit: incidents, approvals,
      votes, people, tokens, grants, sources, settings, marks and devices. In a terminal:{' '}
      <code>{spelled('nightshift verify --all')}</code>
    </Verify>
  )
}

type Props = { run: (tell: (done: string) => void) => Promise<Verified>; children: ReactNode }

function Verify({ run, children }: Props) {
  const [done, tell] = useState('')
  const verify = useMutation({ mutationFn: () => run(tell), onMutate: () => tell('') })
  return (
    <Section className="stack tight verify" id="verify-title" title="Verify">
      <p className="soft">{children}</p>
      <p>
        <button type="button" disabled={verify.isPending} onClick={() => verify.mutate()}>
          {verify.isPending ? 'Verifying…' : verify.data ? 'Verify again' : 'Verify'}
        </button>
      </p>
      <div role="status" className="stack tight">
        {verify.isPending && done && <p className="soft">Compared so far: {done}.</p>}
        {verify.data && <Outcome verified={verify.data} />}
      </div>
      {verify.error && <Failed error={verify.error} again={() => verify.mutate()} />}
    </Section>
  )
}

function Outcome({ verified: { differences, checked, untold, chains } }: { verified: Verified }) {
  const broken = chains.filter(({ problem }) => problem)
  const count = differences.length
  return (
    <>
      {count === 0 && broken.length === 0 && <p className="tone-proved strong">✔ Nothing differs.</p>}
      {broken.map(({ of, problem }) => (
        <p key={of} className="tone-broken strong">
          ✖ The chain of {of} is broken at row {problem?.seq}: <Inert text={problem?.what ?? ''} />
        </p>
      ))}
      {count > 0 && (
        <>
          <p className="tone-broken strong">
            ✖ {formatNumber(count)} {count === 1 ? 'stored fact differs' : 'stored facts differ'} from the rows:
          </p>
          <ul className="stack tight">
            {differences.map(({ subject, what }) => (
              <li key={`${subject} ${what}`} className="wraps">
                <Inert className="mono small" text={subject} />: <Inert text={what} />
              </li>
            ))}
          </ul>
        </>
      )}
      <Counted checked={checked} untold={untold} />
      {chains
        .filter(({ problem }) => !problem)
        .map(({ of, rows, head }) => (
          <p key={of} className="small soft wraps">
            The chain of {of} holds over {formatNumber(rows)} rows; its last hash is{' '}
            <span className="mono">{head}</span>
          </p>
        ))}
    </>
  )
}

function Counted({ checked, untold }: Pick<Findings, 'checked' | 'untold'>) {
  const kinds = Object.keys(checked).filter((kind) => (checked[kind] ?? 0) > 0)
  const hasUntold = Object.keys(untold).length > 0
  return (
    <>
      <table>
        <caption className="small soft">What was compared, by kind</caption>
        <thead>
          <tr>
            <th scope="col">Kind</th>
            <th scope="col" className="num">
              Held
            </th>
            {hasUntold && (
              <th scope="col" className="num">
                Not in older rows
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {kinds.map((kind) => (
            <tr key={kind}>
              <th scope="row">{kind}</th>
              <td className="num">{formatNumber(checked[kind] ?? 0)}</td>
              {hasUntold && <td className="num">{untold[kind] ? formatNumber(untold[kind]) : ''}</td>}
            </tr>
          ))}
        </tbody>
      </table>
      {hasUntold && (
        <p className="small soft">
          Rows that an older version wrote do not record every field. The missing fields cannot be checked.
        </p>
      )}
    </>
  )
}
