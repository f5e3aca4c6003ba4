/**
 * Defines a small shop in PostgreSQL and MariaDB. The data is large enough to show a lost index or
 * another plan, and small enough to start in seconds.
 */

/**
 * The pages of order_events contain few rows, so that a vacuum that pauses per page takes longer
 * than a scenario.
 */
export const postgresqlSchema = [
  'create extension pg_stat_statements',
  `create table customers (id int primary key, name text not null, email text not null, region text not null, tier int not null)`,
  `create table orders (id bigserial primary key, customer_id int not null, state text not null, cents int not null,
     note text, created_at timestamptz not null default now())`,
  `create table order_events (id bigserial primary key, order_id bigint not null, what text not null,
     at timestamptz not null default now()) with (fillfactor = 10)`,
  'create table stock (id int primary key, sku text not null, pieces int not null)',
  'create table carts (id int primary key, customer_id int not null, items int not null, changed_at timestamptz not null default now())',
  `create table jobs (id int primary key, state text not null, region text not null, tier int not null)
     with (autovacuum_analyze_scale_factor = 0.5)`,
  'create table schema_migrations (version text primary key, applied_at timestamptz not null default now())',
  `insert into customers select n, 'Customer ' || n, 'c' || n || '@shop.example', 'r' || n % 500, n % 4 from generate_series(1, 4000) n`,
  `insert into orders (customer_id, state, cents, note) select n % 4000 + 1, case when n % 20 = 0 then 'open' else 'paid' end, n % 9000, null
     from generate_series(1, 60000) n`,
  `insert into order_events (order_id, what) select n, 'created' from generate_series(1, 40000) n`,
  `insert into stock select n, 'SKU-' || n, 1000 from generate_series(1, 50) n`,
  'insert into carts select n, n % 4000 + 1, 1 from generate_series(1, 20000) n',
  `insert into jobs select n, case when n % 20 = 0 then 'ready' else 'done' end, 'r' || n % 500, n % 4 from generate_series(1, 40000) n`,
  'create index orders_customer_id_idx on orders (customer_id)',
  'create index customers_tier_idx on customers (tier)',
  `insert into schema_migrations (version) values ('20260901_shop'), ('20261013_order_events')`,
  'alter table customers owner to shop_app',
  'alter table orders owner to shop_app',
  'alter table order_events owner to shop_app',
  'alter table stock owner to shop_app',
  'alter table carts owner to shop_app',
  'alter table jobs owner to shop_app',
  'alter table schema_migrations owner to shop_app',
  'analyze',
]

/** Reads the orders of a customer, cheaply by an index. */
export const customerStatement = 'select id, state, cents from orders where customer_id = 1234'
/**
 * Joins the ready jobs. The planner uses a hash join as long as its statistics about ready jobs are
 * right.
 */
export const jobsStatement = `select count(*) from jobs j join customers c on c.region = j.region and c.tier = j.tier where j.state = 'ready'`

/** The steady work of the shop's programs. */
export const shopWork = (url: string, replicaUrl: string) => {
  const session = (application: string, everyMs: number, steps: string[], at = url) => ({
    url: at,
    application,
    everyMs,
    steps,
    isLasting: true,
  })
  return [
    session('shop-web', 300, [
      customerStatement,
      `insert into orders (customer_id, state, cents) values (17, 'open', 4200)`,
    ]),
    session('shop-api', 700, [
      'update stock set pieces = pieces - 1 where id = 40',
      'update carts set items = items + 1, changed_at = now() where id = 77',
    ]),
    session('shop-jobs', 2_000, [jobsStatement]),
    session('shop-search', 1_000, [`select count(*) from stock where pieces > 0`], replicaUrl),
  ]
}

export const mariadbSchema = [
  'create database shop',
  'use shop',
  `create table orders (id int auto_increment primary key, customer_id int not null, state varchar(16) not null, cents int not null,
     created_at timestamp not null default current_timestamp, key (customer_id))`,
  `insert into orders (customer_id, state, cents) select seq % 400 + 1, 'paid', seq % 9000 from seq_1_to_5000`,
  'create table stock (id int primary key, sku varchar(32) not null, pieces int not null)',
  `insert into stock select seq, concat('SKU-', seq), 1000 from seq_1_to_50`,
]

export const mariadbWork = [
  `insert into orders (customer_id, state, cents) values (17, 'open', 4200)`,
  'update stock set pieces = pieces - 1 where id = 40',
  'select count(*) from stock where pieces > 0',
]
