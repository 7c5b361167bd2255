-- A mixed load for sqlite3, in memory: tables filled by a recursive query, joins,
-- aggregates, strings, a window and updates through an index.
DROP TABLE IF EXISTS item;
DROP TABLE IF EXISTS sale;
CREATE TABLE item(id INTEGER PRIMARY KEY, grp INT, name TEXT, price REAL);
CREATE TABLE sale(id INTEGER PRIMARY KEY, item INT, qty INT, day INT);
WITH RECURSIVE n(i, s) AS (SELECT 1, 12345 UNION ALL SELECT i + 1, (s * 1103515245 + 12345) & 2147483647 FROM n WHERE i < 20000)
INSERT INTO item SELECT i, s % 97, printf('item %d of %x', i, s >> 7), (s % 10000) / 100.0 FROM n;
WITH RECURSIVE n(i, s) AS (SELECT 1, 54321 UNION ALL SELECT i + 1, (s * 1103515245 + 12345) & 2147483647 FROM n WHERE i < 60000)
INSERT INTO sale SELECT i, (s >> 8) % 20000 + 1, (s >> 5) % 9 + 1, (s >> 11) % 365 FROM n;
CREATE INDEX sale_item ON sale(item);
CREATE INDEX item_grp ON item(grp, price);
SELECT grp, count(*), sum(qty * price), max(name) FROM item JOIN sale ON sale.item = item.id GROUP BY grp ORDER BY 3 DESC LIMIT 5;
SELECT count(*), sum(length(replace(upper(name), 'ITEM', 'thing'))) FROM item WHERE name LIKE '%7 of%' OR name GLOB '*a?f*';
SELECT sum(r) FROM (SELECT rank() OVER (PARTITION BY grp ORDER BY price) AS r FROM item);
UPDATE item SET price = price * 1.1 WHERE grp IN (SELECT grp FROM item GROUP BY grp HAVING avg(price) > 50);
DELETE FROM sale WHERE day % 7 = 3;
SELECT day, group_concat(id, '-') FROM (SELECT day, id FROM sale WHERE qty > 7 ORDER BY day, id DESC) GROUP BY day ORDER BY length(group_concat(id, '-')) DESC LIMIT 1;
SELECT count(DISTINCT substr(name, 6, 3)), min(hex(name)) FROM item;
SELECT a.grp, count(*) FROM item a JOIN item b ON a.grp = b.grp AND a.price < b.price AND b.id % 40 = 1 GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 3;
