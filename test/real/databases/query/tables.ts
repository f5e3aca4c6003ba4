/** The tables of a shop, with rows, under the names that the on-call statements use. */
export const siteTables = `
  create extension pg_stat_statements;
  create schema billing;
  create table users (id serial primary key, email text unique, password_hash text, created_at timestamptz default now(), last_login_at timestamptz, status text default 'active', country text, plan text);
  create table orders (id serial primary key, user_id int references users, status text, total numeric, currency text default 'EUR', note text, created_at timestamptz default now(), updated_at timestamptz default now());
  create index on orders (user_id); create index orders_open on orders (created_at) where status = 'pending'; create index on orders (user_id, status);
  create table order_items (id serial primary key, order_id int, product_id int, quantity int, price numeric);
  create table products (id serial primary key, sku text, name text, stock int, price numeric, attributes jsonb);
  create table payments (id serial primary key, order_id int, provider text, status text, amount numeric, error_code text, created_at timestamptz default now());
  create table jobs (id serial primary key, queue text, kind text, status text, priority int default 0, attempts int default 0, run_at timestamptz default now(), locked_at timestamptz, locked_by text, last_error text, created_at timestamptz default now(), finished_at timestamptz);
  create table delayed_jobs (id serial primary key, queue text, priority int, attempts int, handler text, last_error text, run_at timestamptz, locked_at timestamptz, failed_at timestamptz, locked_by text);
  create table events (id serial primary key, type text, payload jsonb, created_at timestamptz default now());
  create table sessions (id serial primary key, user_id int, token text, created_at timestamptz default now(), expires_at timestamptz);
  create table api_keys (id serial primary key, user_id int, key_hash text, last_used_at timestamptz);
  create table audit_log (id serial primary key, actor text, action text, at timestamptz default now(), detail text);
  create table outbox (id serial primary key, topic text, payload jsonb, created_at timestamptz default now(), sent_at timestamptz);
  create table schema_migrations (version bigint primary key, dirty boolean);
  create table feature_flags (name text primary key, enabled boolean, updated_at timestamptz default now());
  create table metrics_hourly (at timestamptz, name text, value double precision);
  create table billing.invoices (id serial primary key, user_id int, due_on date, paid_at timestamptz, total numeric);
  create table measurements (at timestamptz, value double precision) partition by range (at);
  create table measurements_2026_11 partition of measurements for values from ('2026-11-01') to ('2026-12-01');
  create table measurements_other partition of measurements default;
  create view recent_orders as select id, status, created_at from orders where created_at > now() - interval '1 day';
  create materialized view orders_by_day as select date_trunc('day', created_at) as day, count(*) from orders group by 1;
  create table wide (id int, big text); alter table wide alter big set storage external;
  create publication shop for table orders;
  create statistics orders_status (dependencies) on user_id, status from orders;
  insert into users (email, password_hash, country) select 'user' || n || '@example.com', 'planted-secret-' || n, 'DE' from generate_series(1, 500) n;
  insert into orders (user_id, status, total, note, created_at) select n % 500 + 1, (array['pending', 'paid', 'failed', 'processing'])[n % 4 + 1], n, 'note ' || n, now() - n * interval '1 minute' from generate_series(1, 5000) n;
  insert into order_items (order_id, product_id, quantity, price) select n, n % 50 + 1, 1, 10 from generate_series(1, 5000) n;
  insert into products (sku, name, stock, price, attributes) select 'sku-' || n, 'thing', n - 3, 10, '{"color": "red", "tags": ["a"]}' from generate_series(1, 50) n;
  insert into payments (order_id, provider, status, amount, error_code) select n, 'card', (array['failed', 'done'])[n % 2 + 1], 10, 'declined' from generate_series(1, 1000) n;
  insert into jobs (queue, kind, status, attempts, last_error) select 'default', 'mail', (array['queued', 'running', 'failed', 'done'])[n % 4 + 1], n % 5, 'timeout' from generate_series(1, 1000) n;
  insert into delayed_jobs (queue, attempts, run_at) select 'mail', n % 6, now() from generate_series(1, 100) n;
  insert into events (type, payload) select 'webhook.failed', json_build_object('error', 'timeout', 'request', json_build_object('path', '/x'), 'password', 'planted-secret-' || n)::jsonb from generate_series(1, 2000) n;
  insert into sessions (user_id, token, expires_at) select n % 500, 'planted-secret-' || n, now() + interval '1 day' from generate_series(1, 500) n;
  insert into api_keys (user_id, key_hash) select n, 'planted-secret-' || n from generate_series(1, 50) n;
  insert into audit_log (actor, action) select 'anna', 'login' from generate_series(1, 50);
  insert into schema_migrations values (1, false); insert into feature_flags values ('new', true);
  insert into metrics_hourly select now() - n * interval '1 hour', 'signups', n from generate_series(1, 50) n;
  insert into billing.invoices (user_id, due_on, total) select n, current_date - 1, 10 from generate_series(1, 50) n;
  insert into measurements select '2026-11-01'::timestamptz + n * interval '1 hour', n from generate_series(1, 500) n;
  insert into wide select n, repeat('x', 5000000) from generate_series(1, 5) n;
`

/**
 * Code of the site that leaves a trace when it runs, even in a transaction that cannot write: it
 * runs as its owner, and writes a file.
 */
export const effectTables = (trap: string, port: number): string => `
  create schema app;
  create table t (n int); insert into t values (1);
  create sequence s;
  create extension dblink; create extension postgres_fdw; create extension tablefunc;
  create function app.trace(name text) returns int language plpgsql volatile security definer as $$
    begin execute format('copy (select 1) to %L', '${trap}/' || name || '-' || pg_backend_pid() || '-' || clock_timestamp()); return 1; end $$;
  create function app.refresh() returns int language plpgsql security definer as $$ begin return app.trace('app-refresh'); end $$;
  create function refresh() returns int language plpgsql security definer as $$ begin return app.trace('refresh'); end $$;
  create function run_as_owner() returns int language plpgsql security definer as $$ begin perform pg_advisory_lock(77); return app.trace('owner'); end $$;
  create function lower(orders) returns text language plpgsql security definer as $$ begin return app.trace('lower')::text; end $$;
  create function age(orders) returns text language plpgsql security definer as $$ begin return app.trace('age')::text; end $$;
  create function length(orders) returns int language plpgsql security definer as $$ begin return app.trace('length'); end $$;
  create function format(orders) returns text language plpgsql security definer as $$ begin return app.trace('format')::text; end $$;
  create function count_orders(orders) returns int language plpgsql security definer as $$ begin return app.trace('count'); end $$;
  create function refresh_row(orders) returns int language plpgsql security definer as $$ begin return app.trace('refresh-row'); end $$;
  create function version(int) returns text language plpgsql security definer as $$ begin return app.trace('version')::text; end $$;
  create function now(text) returns int language plpgsql security definer as $$ begin return app.trace('now'); end $$;
  create function app.lower(text) returns text language plpgsql security definer as $$ begin return app.trace('app-lower')::text; end $$;
  create function sum_state(int, orders) returns int language plpgsql security definer as $$ begin return app.trace('sum'); end $$;
  create aggregate sum(orders) (sfunc = sum_state, stype = int, initcond = '0');
  create aggregate max(orders) (sfunc = sum_state, stype = int, initcond = '0');
  create function sum_of(int) returns int language plpgsql security definer as $$ begin return app.trace('sum-of'); end $$;
  create function steady(int) returns int language plpgsql immutable security definer as $$ begin return app.trace('steady'); end $$;
  create function plus(orders, int) returns int language plpgsql security definer as $$ begin return app.trace('plus'); end $$;
  create operator + (leftarg = orders, rightarg = int, function = plus);
  create operator -> (leftarg = orders, rightarg = int, function = plus);
  create function mix(orders, orders) returns int language plpgsql security definer as $$ begin return app.trace('mix'); end $$;
  create operator # (leftarg = orders, rightarg = orders, function = mix);
  create function glue(orders, text) returns text language plpgsql security definer as $$ begin return app.trace('glue')::text; end $$;
  create operator || (leftarg = orders, rightarg = text, function = glue);
  create function app.add(int, int) returns int language plpgsql security definer as $$ begin return app.trace('add'); end $$;
  create operator app.+ (leftarg = int, rightarg = int, function = app.add);
  create operator app.< (leftarg = int, rightarg = int, function = app.add);
  create function is_fine(text) returns boolean language plpgsql security definer as $$ begin perform app.trace('domain'); return true; end $$;
  create domain app.checked as text check (is_fine(value)); create domain checked as text check (is_fine(value));
  create view v_effect as select app.trace('view') as n;
  create view v_nested as select n from v_effect where n > 0;
  create table guarded (id int, note text); insert into guarded values (1, 'x');
  create function may_see(int) returns boolean language plpgsql security definer as $$ begin perform app.trace('policy'); return true; end $$;
  alter table guarded enable row level security; create policy p on guarded using (may_see(id));
  create server other foreign data wrapper postgres_fdw options (host '127.0.0.1', port '${port}', dbname 'traps');
  create user mapping for public server other options (user 'site', password_required 'false');
  create foreign table far_t (n int) server other options (schema_name 'public', table_name 'v_effect');
  create table far_parent (n int) partition by list (n);
  create foreign table far_part partition of far_parent for values in (1) server other options (schema_name 'public', table_name 'v_effect');
  create procedure app.work() language plpgsql security definer as $$ begin perform app.trace('procedure'); end $$;
  grant usage on schema app to public;
`
