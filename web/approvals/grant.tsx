import type { GrantWish } from '../../domain/approval.ts'
import { Inert } from '../inert.tsx'

const usual: GrantWish = { uses: 3, hours: 4 }

/** Whether the very same action may run again without asking, how often and for how long. */
export function Grant({
  refused,
  disabled,
  wish,
  onWish,
}: {
  refused: string | null
  disabled: boolean
  wish: GrantWish | null
  onWish(wish: GrantWish | null): void
}) {
  const { uses, hours } = wish ?? usual
  return (
    <fieldset className="stack tight" disabled={disabled}>
      <label className="choice">
        <input
          type="checkbox"
          checked={wish !== null}
          disabled={refused !== null}
          aria-describedby="grant-why"
          onChange={(event) => onWish(event.target.checked ? usual : null)}
        />
        Let the very same action run again without asking
      </label>
      <p id="grant-why" className="soft small">
        <Inert
          text={refused ?? 'The same arguments on the same state, in any incident. You can revoke it at any time.'}
        />
      </p>
      {wish && (
        <div className="row">
          <label className="row">
            Times
            <input
              type="number"
              required
              min={1}
              max={20}
              value={uses}
              onChange={(event) => onWish({ hours, uses: event.target.valueAsNumber })}
            />
          </label>
          <label className="row">
            within hours
            <input
              type="number"
              required
              min={0.25}
              max={8}
              step={0.25}
              value={hours}
              onChange={(event) => onWish({ uses, hours: event.target.valueAsNumber })}
            />
          </label>
        </div>
      )}
    </fieldset>
  )
}
