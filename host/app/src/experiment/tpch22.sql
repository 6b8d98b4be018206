-- The 22 questions of TPC-H, asked in SQL of our own with the constants of the benchmark's validation
-- run, for Spark's dialect. Where the benchmark orders an answer and cuts it, so do these.

-- Q01 pricing summary
SELECT l_returnflag, l_linestatus, sum(l_quantity) AS quantity, sum(l_extendedprice) AS price,
       sum(l_extendedprice * (1 - l_discount)) AS discounted,
       sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS charged,
       avg(l_quantity) AS mean_quantity, avg(l_extendedprice) AS mean_price,
       avg(l_discount) AS mean_discount, count(*) AS items
FROM lineitem
WHERE l_shipdate <= DATE '1998-09-02'
GROUP BY l_returnflag, l_linestatus
ORDER BY l_returnflag, l_linestatus;

-- Q02 supplier of least cost
WITH offers AS (
  SELECT ps_partkey, ps_supplycost, s_acctbal, s_name, n_name, s_address, s_phone, s_comment
  FROM partsupp JOIN supplier ON ps_suppkey = s_suppkey
       JOIN nation ON s_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey
  WHERE r_name = 'EUROPE'),
cheapest AS (SELECT ps_partkey AS part, min(ps_supplycost) AS cost FROM offers GROUP BY ps_partkey)
SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
FROM part JOIN offers ON p_partkey = ps_partkey
     JOIN cheapest ON part = p_partkey AND cost = ps_supplycost
WHERE p_size = 15 AND p_type LIKE '%BRASS'
ORDER BY s_acctbal DESC, n_name, s_name, p_partkey
LIMIT 100;

-- Q03 shipping priority
SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
GROUP BY l_orderkey, o_orderdate, o_shippriority
ORDER BY revenue DESC, o_orderdate, l_orderkey
LIMIT 10;

-- Q04 order priority
SELECT o_orderpriority, count(*) AS late
FROM orders
WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01'
  AND EXISTS (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
GROUP BY o_orderpriority
ORDER BY o_orderpriority;

-- Q05 local suppliers
SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM region JOIN nation ON n_regionkey = r_regionkey
     JOIN customer ON c_nationkey = n_nationkey JOIN orders ON o_custkey = c_custkey
     JOIN lineitem ON l_orderkey = o_orderkey
     JOIN supplier ON s_suppkey = l_suppkey AND s_nationkey = c_nationkey
WHERE r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
GROUP BY n_name
ORDER BY revenue DESC;

-- Q06 revenue change
SELECT sum(l_extendedprice * l_discount) AS revenue
FROM lineitem
WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
  AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24;

-- Q07 volume between two nations
SELECT seller.n_name AS sold_in, buyer.n_name AS bought_in, extract(YEAR FROM l_shipdate) AS shipped,
       sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM supplier JOIN lineitem ON s_suppkey = l_suppkey JOIN orders ON o_orderkey = l_orderkey
     JOIN customer ON c_custkey = o_custkey
     JOIN nation seller ON s_nationkey = seller.n_nationkey
     JOIN nation buyer ON c_nationkey = buyer.n_nationkey
WHERE ((seller.n_name = 'FRANCE' AND buyer.n_name = 'GERMANY')
    OR (seller.n_name = 'GERMANY' AND buyer.n_name = 'FRANCE'))
  AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
GROUP BY seller.n_name, buyer.n_name, extract(YEAR FROM l_shipdate)
ORDER BY sold_in, bought_in, shipped;

-- Q08 national market share
SELECT extract(YEAR FROM o_orderdate) AS ordered,
       sum(CASE WHEN seller.n_name = 'BRAZIL' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
         / sum(l_extendedprice * (1 - l_discount)) AS share
FROM part JOIN lineitem ON p_partkey = l_partkey JOIN supplier ON s_suppkey = l_suppkey
     JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey
     JOIN nation buyer ON c_nationkey = buyer.n_nationkey
     JOIN region ON buyer.n_regionkey = r_regionkey
     JOIN nation seller ON s_nationkey = seller.n_nationkey
WHERE r_name = 'AMERICA' AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
  AND p_type = 'ECONOMY ANODIZED STEEL'
GROUP BY extract(YEAR FROM o_orderdate)
ORDER BY ordered;

-- Q09 profit by product
SELECT n_name, extract(YEAR FROM o_orderdate) AS ordered,
       sum(l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity) AS profit
FROM part JOIN lineitem ON p_partkey = l_partkey JOIN supplier ON s_suppkey = l_suppkey
     JOIN partsupp ON ps_suppkey = l_suppkey AND ps_partkey = l_partkey
     JOIN orders ON o_orderkey = l_orderkey JOIN nation ON s_nationkey = n_nationkey
WHERE p_name LIKE '%green%'
GROUP BY n_name, extract(YEAR FROM o_orderdate)
ORDER BY n_name, ordered DESC;

-- Q10 returned items
SELECT c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name,
       c_address, c_phone, c_comment
FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
     JOIN nation ON c_nationkey = n_nationkey
WHERE o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01' AND l_returnflag = 'R'
GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
ORDER BY revenue DESC, c_custkey
LIMIT 20;

-- Q11 important stock
WITH stock AS (
  SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS worth
  FROM partsupp JOIN supplier ON ps_suppkey = s_suppkey JOIN nation ON s_nationkey = n_nationkey
  WHERE n_name = 'GERMANY'
  GROUP BY ps_partkey)
SELECT ps_partkey, worth
FROM stock
WHERE worth > (SELECT sum(worth) * 0.0001 FROM stock)
ORDER BY worth DESC, ps_partkey;

-- Q12 shipping modes and priority
SELECT l_shipmode,
       sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high,
       sum(CASE WHEN o_orderpriority NOT IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS low
FROM orders JOIN lineitem ON o_orderkey = l_orderkey
WHERE l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
  AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'
GROUP BY l_shipmode
ORDER BY l_shipmode;

-- Q13 distribution of customers
SELECT placed, count(*) AS customers
FROM (SELECT c_custkey, count(o_orderkey) AS placed
      FROM customer LEFT JOIN orders
           ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
      GROUP BY c_custkey) each
GROUP BY placed
ORDER BY customers DESC, placed DESC;

-- Q14 effect of a promotion
SELECT 100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
         / sum(l_extendedprice * (1 - l_discount)) AS promoted
FROM lineitem JOIN part ON l_partkey = p_partkey
WHERE l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01';

-- Q15 top supplier
WITH earned AS (
  SELECT l_suppkey AS supplier_no, sum(l_extendedprice * (1 - l_discount)) AS total
  FROM lineitem
  WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01'
  GROUP BY l_suppkey)
SELECT s_suppkey, s_name, s_address, s_phone, total
FROM supplier JOIN earned ON s_suppkey = supplier_no
WHERE total = (SELECT max(total) FROM earned)
ORDER BY s_suppkey;

-- Q16 suppliers of parts
SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS suppliers
FROM partsupp JOIN part ON p_partkey = ps_partkey
WHERE p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%'
  AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)
  AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
GROUP BY p_brand, p_type, p_size
ORDER BY suppliers DESC, p_brand, p_type, p_size;

-- Q17 small orders
WITH usual AS (SELECT l_partkey AS part, 0.2 * avg(l_quantity) AS small FROM lineitem GROUP BY l_partkey)
SELECT sum(l_extendedprice) / 7.0 AS yearly
FROM lineitem JOIN part ON p_partkey = l_partkey JOIN usual ON usual.part = p_partkey
WHERE p_brand = 'Brand#23' AND p_container = 'MED BOX' AND l_quantity < small;

-- Q18 large orders
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity
FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON o_orderkey = l_orderkey
WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 300)
GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
ORDER BY o_totalprice DESC, o_orderdate, o_orderkey
LIMIT 100;

-- Q19 discounted revenue
SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM lineitem JOIN part ON p_partkey = l_partkey
WHERE l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON'
  AND ((p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
        AND l_quantity BETWEEN 1 AND 11 AND p_size BETWEEN 1 AND 5)
    OR (p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
        AND l_quantity BETWEEN 10 AND 20 AND p_size BETWEEN 1 AND 10)
    OR (p_brand = 'Brand#34' AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
        AND l_quantity BETWEEN 20 AND 30 AND p_size BETWEEN 1 AND 15));

-- Q20 promotion of parts
WITH shipped AS (
  SELECT l_partkey, l_suppkey, 0.5 * sum(l_quantity) AS half
  FROM lineitem
  WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
  GROUP BY l_partkey, l_suppkey)
SELECT s_name, s_address
FROM supplier JOIN nation ON s_nationkey = n_nationkey
WHERE n_name = 'CANADA'
  AND s_suppkey IN (
    SELECT ps_suppkey
    FROM partsupp JOIN shipped ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey
    WHERE ps_availqty > half AND ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%'))
ORDER BY s_name;

-- Q21 suppliers who kept orders waiting
SELECT s_name, count(*) AS waits
FROM supplier JOIN lineitem late ON s_suppkey = late.l_suppkey
     JOIN orders ON o_orderkey = late.l_orderkey JOIN nation ON s_nationkey = n_nationkey
WHERE o_orderstatus = 'F' AND late.l_receiptdate > late.l_commitdate AND n_name = 'SAUDI ARABIA'
  AND EXISTS (SELECT 1 FROM lineitem other
              WHERE other.l_orderkey = late.l_orderkey AND other.l_suppkey <> late.l_suppkey)
  AND NOT EXISTS (SELECT 1 FROM lineitem worse
                  WHERE worse.l_orderkey = late.l_orderkey AND worse.l_suppkey <> late.l_suppkey
                    AND worse.l_receiptdate > worse.l_commitdate)
GROUP BY s_name
ORDER BY waits DESC, s_name
LIMIT 100;

-- Q22 customers to win back
WITH idle AS (
  SELECT substring(c_phone, 1, 2) AS country, c_acctbal, c_custkey
  FROM customer
  WHERE substring(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17'))
SELECT country, count(*) AS customers, sum(c_acctbal) AS balance
FROM idle
WHERE c_acctbal > (SELECT avg(c_acctbal) FROM idle WHERE c_acctbal > 0.00)
  AND NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey)
GROUP BY country
ORDER BY country;
